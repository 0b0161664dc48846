"""A proxy in front of an HTTP store, in this process, that counts what clients ask for and fails when it is told to.

proxy = Proxy(port)                 # of the store; proxy.url for clients
proxy.requests                      # [Request(method, path, sent, status)], in the order in which they ended
proxy.fault = "503"                 # or "403", "reset", "hang", "slow"; None is no fault
proxy.fault = "early 403"           # answered, and the connection closed, before the body has come; or "early 404"
"""

import asyncio
import contextlib
import threading
import time
from typing import NamedTuple

_SLOW_SECS = 0.05


class Request(NamedTuple):
    method: str
    path: str  # without the query
    sent: int  # bytes of the body
    status: int  # of the answer; 0 for none
    time: float  # when it came, on the monotonic clock


class Proxy:
    """Listens on a port of its own; `fault` may be set at any moment, and holds for requests that are under way too."""

    def __init__(self, port):
        self.requests = []
        self.seen = []  # as `requests`, also of those that never end, when they have come in
        self._fault = None
        self._backend = port
        self._loop = asyncio.new_event_loop()
        self._clients = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._changed = self._call(self._event())
        self._server = self._call(asyncio.start_server(self._client, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _event(self):
        return asyncio.Event()

    @property
    def fault(self):
        return self._fault

    @fault.setter
    def fault(self, fault):
        assert fault in {None, "403", "early 403", "early 404", "503", "reset", "hang", "slow"}
        self._fault = fault
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self):
        self._changed.set()
        self._changed.clear()

    def count(self, method=None):
        """Return how many requests were answered."""
        return sum(method in (None, one.method) for one in self.requests)

    def sent(self):
        """Return the bytes of all bodies that clients have sent."""
        return sum(one.sent for one in self.seen)

    def clear(self):
        self.requests.clear()
        self.seen.clear()

    def puts(self):
        """Return [(path, bytes)] of the puts that succeeded, in order."""
        return [(one.path, one.sent) for one in self.requests if one.method == "PUT" and one.status == 200]

    def stop(self):
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _close(self):
        self._server.close()
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the loop's next round

    # ---- one connection of a client, and one of ours behind it

    async def _client(self, reader, writer):
        behind = None
        task = asyncio.current_task()
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                begin = time.monotonic()
                if self._fault in {"early 403", "early 404"}:
                    await self._refuse(writer, self._fault[-3:])
                    break
                if b"100-continue" in head.lower():
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await self._body(head, reader)
                method, target, _ = head.decode("latin-1").split("\r\n")[0].split(" ")
                path = target.split("?")[0]
                self.seen.append(Request(method, path, len(body), 0, begin))
                if not await self._may_pass(writer):
                    break
                if behind is None:
                    behind = await asyncio.open_connection("127.0.0.1", self._backend)
                lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:")]
                behind[1].write(b"\r\n".join(lines) + body)
                answer = await behind[0].readuntil(b"\r\n\r\n")
                status = int(answer.split(b" ", 2)[1])
                bodiless = method == "HEAD" or status in {204, 304}
                answer += b"" if bodiless else await self._body(answer, behind[0])
                if self._fault in {"hang", "reset"} and not await self._may_pass(writer):
                    break
                self.requests.append(Request(method, path, len(body), status, begin))
                writer.write(answer)
                await writer.drain()
        except (asyncio.CancelledError, asyncio.IncompleteReadError, OSError):
            pass
        finally:
            for stream in (writer, behind and behind[1]):
                if stream:
                    with contextlib.suppress(OSError):
                        stream.close()

    async def _may_pass(self, writer):
        """Apply the fault; False where the connection must be closed."""
        while self._fault == "hang":
            await self._changed.wait()
        if self._fault == "reset":
            writer.transport.abort()
            return False
        if self._fault in {"403", "503"}:
            await self._refuse(writer, self._fault)
            return False
        if self._fault == "slow":
            await asyncio.sleep(_SLOW_SECS)
        return True

    async def _refuse(self, writer, status):
        writer.write(b"HTTP/1.1 %s No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status.encode())
        await writer.drain()

    async def _body(self, head, reader):
        """Return the body as it stands on the wire."""
        headers = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
        if b"chunked" in headers.get(b"transfer-encoding", b""):
            body = b""
            while True:
                line = await reader.readuntil(b"\r\n")
                body += line + await reader.readexactly(int(line.split(b";")[0], 16) + 2)
                if line.strip().split(b";")[0] == b"0":
                    return body
        return await reader.readexactly(int(headers.get(b"content-length", b"0")))
