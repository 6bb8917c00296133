"""Documents about recordings."""

from fared.management.documents import recordings
from tests.api.documents.common import NOW
from tests.api.sample import sample

RECORD = sample(
    recordings.RecordDocument,
    recording=True,
    directory="/var/lib/fared/recording",
    since=NOW - 5_000,
    segments=7,
    calls=214_733,
    size=47 << 20,
    limit=64 << 20,
)

RECORD_FAILED = RECORD | {"recording": False, "failure": "No space left on device"}

REPLAY = sample(
    recordings.Replay,
    directory="/tmp/recording",
    version="0.2.0",
    python="3.11",
    recorded_at=NOW - 5_000,
    begins="state",
    segment=7,
    calls=31_204,
    seconds=812.5,
    until="neighbor-changed:2",
    reached=True,
    equal=True,
    confirmed=True,
    events={"packet-received": 9_313, "computed": 14, "neighbor-changed": 2},
    router_id="10.255.0.1",
    hostname="L1",
    neighbors=4,
    routes=31,
    databases_digest="8a1f0c99d2b7e4a05c3d11f0",
    routes_digest="04be77213fa9d6c8e21b5a90",
    test="/tmp/test_fault.recording",
)

REPLAY_DIFFERS = REPLAY | {
    "until": None,
    "reached": None,
    "equal": False,
    "confirmed": False,
    "raised": ["KeyError: 7"],
    "test": None,
    "difference": {
        "segment": 3,
        "call": 1_290,
        "now": 881.25,
        "what": "1 outputs, were 2",
        "outputs": ["From(proto='ospf', event=CloseInterface(ifindex=3))"],
    },
}
