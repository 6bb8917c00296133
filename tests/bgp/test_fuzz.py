"""Neighbors that send anything: no traceback, RFC 7606 is kept, and no other session is harmed.

The seeds are messages of fared, BIRD and FRR; ``FARED_TEST_CORPUS`` names a folder with more, such
as those of tcpdump's captures, in hex. ``FARED_TEST_SOAK=1`` sends a million.
"""

from __future__ import annotations

import random
import resource
import sys
from collections import Counter

import pytest

from tests.bgp.fuzzing import MOST, TARGETS, WITNESS, Far, Speaker, mutations, resets, seeds

_NOTIFICATION = 3
_LOOK = 50
"""Messages after which routes are computed, and everything else is looked at."""


class Storm:
    """Messages from each of the targets, one after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.speaker = Speaker(seed)
        self.sources = {far: mutations(self.rng, seeds(far)) for far in TARGETS}
        self.outcomes: Counter[str] = Counter()

    def run(self, count: int) -> None:
        speaker = self.speaker
        for at in range(count):
            far = TARGETS[at % len(TARGETS)]
            if not speaker.up(far):
                speaker.again(far)
            self._send(far, next(self.sources[far]))
            if at % _LOOK == 0:
                speaker.run(0.1)
                speaker.solver.solve()
                assert speaker.witness_is_unharmed()

    def _send(self, far: Far, message: bytes) -> None:
        speaker = self.speaker
        speaker.sent.clear()
        open_ = speaker.say(far, message)
        if speaker.neighbor(far).held is not None:
            self.outcomes["too many prefixes"] += 1
            assert not open_
            return
        expected = self._expected(far, message)
        assert expected in (None, not open_), (far.name, message.hex(), expected)
        if not open_ and message[18] != _NOTIFICATION:
            assert _NOTIFICATION in kinds(bytes(speaker.sent)), message.hex()
        self.outcomes["goes on" if open_ else "ends"] += 1

    @staticmethod
    def _expected(far: Far, message: bytes) -> bool | None:
        """Whether a message ends the session; None: attributes decide."""
        match message[18]:
            case 2:
                return resets(message, far.families)
            case 4:
                return len(message) != 19
            case 5:
                return len(message) != 23
            case _:
                return True


def kinds(stream: bytes) -> list[int]:
    """The types of the messages of a stream."""
    found, at = [], 0
    while at + 19 <= len(stream):
        found.append(stream[at + 18])
        at += int.from_bytes(stream[at + 16 : at + 18], "big")
    return found


@pytest.mark.rfc("RFC 7606 §2", "RFC 7606 §5.2", "RFC 7606 §5.3")
@pytest.mark.parametrize("seed", range(2))
def test_sessions_end_only_for_what_breaks_framing_or_prefixes(seed):
    storm = Storm(seed)
    storm.run(500)
    assert min(storm.outcomes["goes on"], storm.outcomes["ends"]) > 100
    assert storm.speaker.witness_is_unharmed()


def noise(speaker: Speaker, rng: random.Random, rounds: int) -> None:
    """Have a target open connections, and send pieces of anything on them."""
    far = TARGETS[0]
    good = seeds(far)
    for _ in range(rounds):
        speaker.closed.clear()
        if not speaker.connect(far):
            speaker.run(1.0)
            continue
        data = b"".join(rng.choice(good) for _ in range(rng.randint(1, 6)))
        at = rng.randrange(len(data))
        data = rng.choice((data, data[at:], rng.randbytes(60), data[:at] + rng.randbytes(30)))
        while data:
            size = rng.randint(1, 90)
            if not speaker.say(far, data[:size]):
                break
            data = data[size:]
        speaker.run(0.5)
        assert speaker.up(WITNESS)
    speaker.lose(far)


def test_anything_may_come_on_a_connection_at_any_time():
    speaker, rng = Speaker(), random.Random(7)
    noise(speaker, rng, 150)
    assert speaker.witness_is_unharmed()
    for far in TARGETS:
        speaker.again(far)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(4))
def test_a_million_messages_need_no_more_memory_than_a_tenth_of_them(seed):
    storm = Storm(100 + seed)
    storm.run(25_000)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    noise(storm.speaker, storm.rng, 2_000)
    storm.run(225_000)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) / 1024
    sizes = storm.speaker.sizes()
    sys.stdout.write(f"{dict(storm.outcomes)} {sizes}, {grown:.1f} MB more\n")
    assert grown < 20
    assert sizes["kinds of rejections"] < 10
    assert sizes["told"] == 0
    assert sizes["numbers"] < 100 * MOST
    assert storm.speaker.witness_is_unharmed()
