"""What callbacks add to `Model.train` of MindSpore, for several collect_freq; how a block is made is `callback`'s."""

from __future__ import annotations

import importlib
import importlib.util
import os
from dataclasses import replace

from benchmarks import callback
from benchmarks._block import Block
from benchmarks._measure import alternate
from benchmarks._overhead import Found, Loop, below, figures
from benchmarks._results import Figure
from benchmarks._setting import Setting
from benchmarks._writers import EVENT_FILE

_STEPS = 53
"""Of a block: an epoch of 56 steps without the first three."""

_Case = tuple[str, int]
"""A callback of `callback`, and its collect_freq."""

_BARE: _Case = (callback.BARE, 0)


def missing() -> str:
    """Return what is missing; "" when nothing is."""
    return "" if importlib.util.find_spec("mindspore") else "mindspore not installed"


def training(setting: Setting, freqs: list[int]) -> list[Figure]:
    """Measure the callback of msbridge, the least that writes the loss with EventFileWriter, and SummaryCollector."""
    os.environ.setdefault("GLOG_v", "3")  # MindSpore's errors only
    ms = importlib.import_module("mindspore")
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    peers = [callback.LOSS, callback.DEFAULT, *([callback.BY_HAND] if EVENT_FILE in setting.peers else [])]
    cases = [(name, freq) for name in (callback.OURS, *peers) for freq in freqs]
    models = {case: callback.model(ms) for case in (_BARE, *cases)}

    def sample(case: _Case) -> Block:
        name, freq = case
        wall, inside = callback.block(ms, models[case], callback.made(ms, name, setting.fresh(), freq))
        return Block(wall, cpu=0.0, flush=0.0, flush_cpu=0.0, logging=inside, others=0.0)

    for case in models:
        sample(case)  # compiles
    blocks = alternate(list(models), setting.blocks, sample, setting.progress.tick)
    bare = blocks.pop(_BARE)
    how = "A net of LeNet's size on handwritten digits, graph mode on the CPU; a block is an epoch of a compiled model."
    loop = Loop("mindspore", "Model.train of MindSpore", how, lambda: None, others_delay=False)
    found = Found(loop, bare, blocks)
    direct = []
    for peer, share in ((callback.DEFAULT, 20), (callback.BY_HAND, 5)):
        if peer in peers and 1 in freqs:
            direct += below(found.direct, [callback.OURS], [peer], 1 / share, f"us a step above 1/{share} of")
    return figures(replace(setting, block_steps=_STEPS), found, direct=direct)
