"""An SFTP server in this process, over a directory; it can go away, hang, and refuse to let files grow."""

import asyncio
import threading

import asyncssh


class SftpServer:
    def __init__(self, root, user, password):
        self.login = user, password
        self.root = root
        """What is on the server."""
        self.calls = []
        """(call, bytes) of each write and open."""
        self.hangs = False
        self.refuses_growth = False
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._connections = set()
        self._server = None
        self.port = 0
        self.start()

    def start(self):
        self._server = self._run(self._listen())
        self.port = self._server.get_port()

    def stop(self):
        """Close the port and every connection."""
        self._run(self._close())

    def end(self):
        self.hangs = False
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _listen(self):
        return await asyncssh.listen(
            "127.0.0.1", self.port, server_factory=lambda: _Login(self), server_host_keys=[self._key],
            sftp_factory=lambda channel: _Files(self, channel), reuse_address=True,
        )  # fmt: skip

    async def _close(self):
        self._server.close()
        for connection in list(self._connections):
            connection.abort()
        await self._server.wait_closed()

    async def held(self):
        while self.hangs:
            await asyncio.sleep(0.02)


class _Login(asyncssh.SSHServer):
    def __init__(self, server):
        self._server = server
        self._connection = None

    def connection_made(self, conn):
        self._connection = conn
        self._server._connections.add(conn)

    def connection_lost(self, exc):
        self._server._connections.discard(self._connection)

    def password_auth_supported(self):
        return True

    def validate_password(self, username, password):
        return (username, password) == self._server.login


class _Files(asyncssh.SFTPServer):
    def __init__(self, server, channel):
        self._at = server
        super().__init__(channel, chroot=str(server.root).encode())

    async def open(self, path, pflags, attrs):
        await self._at.held()
        creates = bool(pflags & asyncssh.FXF_CREAT)
        self._at.calls.append(("create" if creates else "open", 0))
        if self._at.refuses_growth and pflags & asyncssh.FXF_WRITE and not creates:
            raise asyncssh.SFTPOpUnsupported("no")
        return super().open(path, pflags, attrs)

    async def write(self, file_obj, offset, data):
        await self._at.held()
        self._at.calls.append(("write", len(data)))
        return super().write(file_obj, offset, data)
