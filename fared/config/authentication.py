"""``authentication`` sections of both protocols: one key, or several with lifetimes.

Leaf names follow ietf-key-chain (RFC 8177). Without times a key is valid forever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal

from fared.config import values
from fared.config.secrets import KeyFilePath, SecretText, Timestamp
from fared.config.section import Section
from fared.protocols.igp.keys import Algorithm, AuthKey, Keyring, TimedKey

_OSPF_ALGORITHMS: Final = "cleartext, md5, hmac-sha-1, hmac-sha-256, hmac-sha-384 or hmac-sha-512"
_ISIS_ALGORITHMS: Final = (
    "cleartext, hmac-md5, hmac-sha-1, hmac-sha-256, hmac-sha-384 or hmac-sha-512"
)
_MAX_KEY: Final = {Algorithm.CLEARTEXT: 8, Algorithm.MD5: 16}
_MAX_ISIS_PASSWORD: Final = 254
_MAX_HMAC_KEY: Final = 255
_MAX_KEY_ID: Final = 255
_MAX_ISIS_KEY_ID: Final = 0xFFFF


class KeyLeaves(Section, frozen=True):
    """The leaves of one key: ``key`` or ``key-file``, and its send and accept lifetimes."""

    unwritten: ClassVar[tuple[object, ...]] = (None, False)
    algorithm: str | None = None
    key_id: Annotated[int, values.whole(0, 0xFFFFFFFF)] | None = None
    key: SecretText | None = None
    key_file: KeyFilePath | None = None
    extended_sequence: bool = False
    send_start: Timestamp | None = None
    send_end: Timestamp | None = None
    accept_start: Timestamp | None = None
    accept_end: Timestamp | None = None

    def _check_secret(self, most: int) -> None:
        if (self.key is None) == (self.key_file is None):
            both = self.key is not None
            what = "key or key-file, not both" if both else "a key, or a key-file"
            raise values.expected(what, field="key-file" if both else "key")
        if len(self.secret()) > most:
            where = "key" if self.key is not None else "key-file"
            raise values.expected(f"a key of at most {most} bytes", field=where)

    def _check_times(self) -> None:
        for use, start, end in (
            ("send", self.send_start, self.send_end),
            ("accept", self.accept_start, self.accept_end),
        ):
            if start is not None and end is not None and end <= start:
                raise values.expected(f"a time after {use}-start", field=f"{use}-end")

    def secret(self) -> bytes:
        """Return the key itself."""
        holder = self.key or self.key_file
        return b"" if holder is None else holder.content

    def timed_key(self) -> TimedKey:
        """Return the key as a setting of the engine."""
        name = str(self.algorithm).replace("hmac-md5", "md5")
        key = AuthKey(Algorithm(name), self.key_id or 0, self.secret(), self.extended_sequence)
        times = {
            name: value.timestamp()
            for name in ("send_start", "send_end", "accept_start", "accept_end")
            if isinstance(value := getattr(self, name), datetime)
        }
        return TimedKey(key, **times)


class OspfKey(KeyLeaves, frozen=True):
    """A key of OSPF.

    ``key-id`` 0..255 identifies the key in each packet; with ``extended-sequence`` (RFC 7474, HMAC
    only) it may have 32 bits. A cleartext password has none.
    """

    algorithm: (
        Literal["cleartext", "md5", "hmac-sha-1", "hmac-sha-256", "hmac-sha-384", "hmac-sha-512"]
        | None
    ) = None

    def check(self) -> None:
        """Refuse what the protocol forbids."""
        if self.algorithm is None:
            raise values.expected(_OSPF_ALGORITHMS, field="algorithm")
        algorithm = Algorithm(self.algorithm)
        hmac = self.algorithm.startswith("hmac")
        if algorithm is Algorithm.CLEARTEXT:
            if self.key_id is not None:
                raise values.expected("no key-id with cleartext", field="key-id")
        elif self.key_id is None:
            raise values.expected(f"a key-id 0..{_MAX_KEY_ID}", field="key-id")
        elif self.key_id > _MAX_KEY_ID and not self.extended_sequence:
            raise values.expected(f"an integer 0..{_MAX_KEY_ID}", field="key-id")
        if self.extended_sequence and not hmac:
            raise values.expected("false unless the algorithm is HMAC", field="extended-sequence")
        self._check_secret(_MAX_KEY.get(algorithm, _MAX_HMAC_KEY))
        self._check_times()


class IsisKey(KeyLeaves, frozen=True):
    """A key of IS-IS (RFC 5304, RFC 5310).

    ``key-id`` 0..65535 is sent with HMAC-SHA. A password and HMAC-MD5 are sent without one, and it
    only distinguishes keys in this file.
    """

    algorithm: (
        Literal[
            "cleartext", "hmac-md5", "hmac-sha-1", "hmac-sha-256", "hmac-sha-384", "hmac-sha-512"
        ]
        | None
    ) = None

    def check(self) -> None:
        """Refuse what the protocol forbids."""
        if self.algorithm is None:
            raise values.expected(_ISIS_ALGORITHMS, field="algorithm")
        if self.key_id is None:
            if self.algorithm.startswith("hmac-sha"):
                raise values.expected(f"a key-id 0..{_MAX_ISIS_KEY_ID}", field="key-id")
        elif self.key_id > _MAX_ISIS_KEY_ID:
            raise values.expected(f"an integer 0..{_MAX_ISIS_KEY_ID}", field="key-id")
        if self.extended_sequence:
            raise values.expected("false: IS-IS has none", field="extended-sequence")
        password = self.algorithm == "cleartext"
        self._check_secret(_MAX_ISIS_PASSWORD if password else _MAX_HMAC_KEY)
        self._check_times()


class Rotation(KeyLeaves, frozen=True):
    """Either the leaves of one key, or ``keys``: a list of them.

    The key that began last is sent, the first of equals; every key that is valid is accepted.
    """

    keys: tuple[KeyLeaves, ...] | None = None

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        """Refuse leaves beside a list."""
        others = given.keys() - {"keys"}
        if given.get("keys") is not None and others:
            raise values.expected("either keys or the leaves of one key", field=min(others))

    def check(self) -> None:
        """Refuse what the protocol forbids, of one key or of each."""
        if self.keys is None:
            super().check()
        else:
            _check_keys(self.keys)

    def keyring(self) -> Keyring:
        """Return the keys as the engine takes them."""
        return tuple(key.timed_key() for key in self.keys or (self,))

    @property
    def extended(self) -> bool:
        """Whether any key has the sequence numbers of RFC 7474."""
        return any(key.extended_sequence for key in self.keys or (self,))


def _check_keys(keys: tuple[KeyLeaves, ...]) -> None:
    if not keys:
        raise values.expected("at least one key", field="keys")
    for twin in _twins(keys):
        raise values.expected(
            "each key-id once", hint=f"{twin.key_id} is there twice", field="keys"
        )


def _twins(keys: tuple[KeyLeaves, ...]) -> Iterator[KeyLeaves]:
    """Yield keys that cannot be distinguished in a packet."""
    seen = set()
    for key in keys:
        if key.key_id is not None and (key.key_id, key.extended_sequence) in seen:
            yield key
        seen.add((key.key_id, key.extended_sequence))


class OspfAuthentication(Rotation, OspfKey, frozen=True):
    """The ``authentication`` of an OSPF interface."""

    keys: tuple[OspfKey, ...] | None = None


class IsisAuthentication(Rotation, IsisKey, frozen=True):
    """The ``authentication`` of an IS-IS interface (hellos) or level (LSPs, SNPs)."""

    keys: tuple[IsisKey, ...] | None = None
