"""Drafters as a table."""

from __future__ import annotations
