"""Typed access to the fields of a ``config.json``; errors name field, value, reason and next step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rooflinekit.errors import ModelError

_HIGHEST: dict[str, int] = {
    "hidden_size": 1_000_000,
    "target_hidden_size": 1_000_000,
    "num_hidden_layers": 1_000,
    "num_attention_heads": 10_000,
    "num_key_value_heads": 10_000,
    "head_dim": 100_000,
    "vocab_size": 100_000_000,
    "draft_vocab_size": 100_000_000,
    "block_size": 4_096,
    "max_position_embeddings": 10**12,
    "sliding_window": 10**12,
}
_HIGHEST_OTHER = 10_000_000
_SHOWN = 60


def shown(value: object) -> str:
    """Write a value for a message, cut when long.

    >>> shown("abc")
    "'abc'"
    """
    try:
        text = repr(value)
    except ValueError:  # an integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 4] + " ..."


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one JSON object.

    A field that is ``null`` counts as absent, except where a method says otherwise.

    Attributes
    ----------
    config
        The object.
    where
        The file or model, for messages.
    spelled
        The config's own spelling of fields that were renamed to the common one, for messages.
    """

    config: Mapping[str, Any]
    where: str
    spelled: Mapping[str, str] = field(default_factory=dict)

    def fail(self, reason: str) -> NoReturn:
        """Refuse the config: one sentence that starts with its name."""
        raise ModelError(f"{self.where}: {reason}")

    def bad(self, key: str, wanted: str) -> NoReturn:
        """Refuse one field: its value is not what is wanted."""
        value = shown(self.config.get(key))
        self.fail(f"{self.spelled.get(key, key)} is {value}, but must be {wanted}; correct the config.json")

    def has(self, key: str) -> bool:
        """Whether a field is there and not null."""
        return self.config.get(key) is not None

    def require(self, keys: Iterable[str], nullable: Iterable[str] = ()) -> None:
        """Refuse the config when fields are missing, naming all of them; ``nullable`` ones may be null."""
        missing = [key for key in keys if not self.has(key)]
        missing += [key for key in nullable if key not in self.config]
        if missing:
            fields = "field" if len(missing) == 1 else "fields"
            self.fail(
                f"required {fields} {', '.join(missing)} missing from the config;"
                " give the config.json as published with the model"
            )

    def count(self, key: str, low: int = 1) -> int:
        """Return a whole number of at least ``low``, within what a model can have."""
        high = _HIGHEST.get(key, _HIGHEST_OTHER)
        value = self.config.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.bad(key, f"a whole number from {low} to {high}")
        return value

    def count_or(self, key: str, default: int, low: int = 1) -> int:
        """Return a whole number, or the default where the field is absent."""
        return self.count(key, low) if self.has(key) else default

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return true or false; absent is the default."""
        value = self.config.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.bad(key, "true or false")
        return value

    def text(self, key: str) -> str | None:
        """Return a text, or ``None`` where the field is absent."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, str):
            self.bad(key, "a text")
        return value

    def indices(self, key: str, below: int | None) -> tuple[int, ...]:
        """Return a list of layer numbers, each under ``below``; absent is empty."""
        value = self.config.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(
            isinstance(item, int) and not isinstance(item, bool) and 0 <= item < (below or _HIGHEST_OTHER)
            for item in value
        ):
            self.bad(key, "a list of layer numbers" + (f" from 0 to {below - 1}" if below else ""))
        return tuple(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; absent is empty."""
        value = self.config.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.bad(key, "a list of texts")
        return tuple(value)

    def section(self, key: str) -> Fields | None:
        """Return a nested object, or ``None`` where the field is absent."""
        value = self.config.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.bad(key, "an object")
        return Fields(value, f"{self.where}: {key}")

    def renamed(self, aliases: Mapping[str, str]) -> Fields:
        """The same fields under their common names, given the family's own spelling of each."""
        used = {key: own for key, own in aliases.items() if not self.has(key) and self.has(own)}
        added = {key: self.config[own] for key, own in used.items()}
        return Fields({**self.config, **added}, self.where, used)

    def filled(self, defaults: Mapping[str, Any]) -> Fields:
        """The same fields, absent ones filled in."""
        absent = {key: value for key, value in defaults.items() if key not in self.config}
        return Fields({**self.config, **absent}, self.where, self.spelled)


_NESTS = ("text_config", "llm_config", "thinker_config")
_INHERITED = ("tie_word_embeddings", "quantization_config", "torch_dtype", "dtype")


def language_part(fields: Fields) -> Fields:
    """Return the fields of the language model: the config itself, or the section a multimodal one nests.

    Class, tied tables, quantization and number format may stand on the outer level only; where the
    inner part says nothing, they are taken from there.
    """
    for key in _NESTS:
        inner = fields.section(key)
        if inner is None:
            continue
        taken = {name: fields.config[name] for name in _INHERITED if fields.has(name) and not inner.has(name)}
        if inner.has("dtype") or inner.has("torch_dtype"):
            taken = {name: value for name, value in taken.items() if "dtype" not in name}
        if not inner.has("model_type"):
            taken |= {
                name: fields.config[name] for name in ("model_type", "architectures") if fields.has(name)
            }
        return language_part(Fields({**inner.config, **taken}, fields.where))
    return fields


def head_shape(fields: Fields, default_head_dim: int | None = None) -> tuple[int, int, int]:
    """Return query heads, KV heads (absent: as many) and head dimension (absent: width over heads)."""
    heads = fields.count("num_attention_heads")
    kv_heads = fields.count_or("num_key_value_heads", heads)
    if heads % kv_heads:
        fields.bad("num_key_value_heads", f"a divisor of num_attention_heads {heads}")
    if fields.has("head_dim"):
        return heads, kv_heads, fields.count("head_dim")
    hidden = fields.count("hidden_size")
    if default_head_dim is None and hidden % heads:
        fields.bad("num_attention_heads", f"a divisor of hidden_size {hidden} where head_dim is not given")
    return heads, kv_heads, default_head_dim or hidden // heads
