"""The ``bfd`` sections: profiles of the router, and BFD on an interface of either protocol."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import field

from fared.config import quantities, values
from fared.config.secrets import KeyFilePath, SecretText
from fared.config.section import Section
from fared.core.bfd import MICROSECONDS, BfdSettings, SessionSettings, Sha1Key

_MAX_KEY = 20
"""RFC 5880 §6.7.4."""
_SESSION = SessionSettings()


class BfdAuthentication(Section, frozen=True):
    """Authentication of a session (RFC 5880 §6.7.4)."""

    unwritten: ClassVar[tuple[object, ...]] = (None,)
    algorithm: Literal["keyed-sha-1", "meticulous-keyed-sha-1"] = "meticulous-keyed-sha-1"
    key_id: Annotated[int, values.whole(0, 255)] = 1
    key: SecretText | None = None
    key_file: KeyFilePath | None = None

    def check(self) -> None:
        """Refuse a section without a key, or with one that is too long."""
        if (self.key is None) == (self.key_file is None):
            raise values.expected("a key, or a key-file", field="key")
        if len(self._secret()) > _MAX_KEY:
            where = "key-file" if self.key is None else "key"
            raise values.expected(f"a key of at most {_MAX_KEY} bytes", field=where)

    def _secret(self) -> bytes:
        holder = self.key or self.key_file
        return b"" if holder is None else holder.content

    def sha1_key(self) -> Sha1Key:
        """Return the key as the session takes it."""
        return Sha1Key(self.key_id, self._secret(), self.algorithm.startswith("meticulous"))


class BfdProfile(Section, frozen=True):
    """Settings that interfaces refer to by name."""

    min_tx: quantities.Period = _SESSION.min_tx / MICROSECONDS
    min_rx: quantities.Period = _SESSION.min_rx / MICROSECONDS
    multiplier: Annotated[int, values.whole(1, 255)] = _SESSION.multiplier
    strict: bool = False
    hold_time: quantities.Duration = 0.0
    authentication: BfdAuthentication | None = None


class BfdRouter(Section, frozen=True):
    """``bfd`` of the router."""

    profiles: dict[values.NotEmpty, BfdProfile] = field(default_factory=dict)


class BfdOptions(Section, frozen=True):
    """``bfd`` of an interface. None: as in the profile, or in its defaults without a profile."""

    enabled: bool = False
    profile: values.NotEmpty | None = None
    min_tx: quantities.Period | None = None
    min_rx: quantities.Period | None = None
    multiplier: Annotated[int, values.whole(1, 255)] | None = None
    strict: bool | None = None
    hold_time: quantities.Duration | None = None
    authentication: BfdAuthentication | None = None

    def settings(self, router: BfdRouter) -> BfdSettings | None:
        """Return the settings of the engines; None: no BFD."""
        if not self.enabled:
            return None
        profile = BfdProfile() if self.profile is None else router.profiles[self.profile]
        own = {name: getattr(self, name) for name in BfdProfile.__struct_fields__}
        chosen = {
            name: getattr(profile, name) if value is None else value for name, value in own.items()
        }
        key: BfdAuthentication | None = chosen["authentication"]
        return BfdSettings(
            session=SessionSettings(
                min_tx=round(chosen["min_tx"] * MICROSECONDS),
                min_rx=round(chosen["min_rx"] * MICROSECONDS),
                multiplier=chosen["multiplier"],
                key=None if key is None else key.sha1_key(),
            ),
            strict=chosen["strict"],
            hold_time=chosen["hold_time"],
        )
