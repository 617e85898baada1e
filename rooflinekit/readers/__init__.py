"""Readers of files other programs wrote: model and drafter configs."""
