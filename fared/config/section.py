"""The base of every section of the configuration file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class Section(BaseModel):
    """One mapping of the file: unknown keys are errors, an empty one means all defaults."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=_kebab,
        defer_build=True,
        hide_input_in_errors=True,  # it may be a secret
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, data: object) -> object:
        return {} if data is None else data
