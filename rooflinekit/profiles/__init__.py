"""Profiles in YAML: strict reading, hardware files, the library of shipped devices, and checks.

``document``
    YAML as a tree of nodes that know their line, with all problems collected into one error.
``quantity``
    Numbers with a unit, bounds and an origin; their JSON Schema.
``hardware_file``
    The table of fields of a hardware file, and ``load_hardware``.
``library``
    Where the files are, their names and aliases.
``checks``, ``kin``, ``families``
    What looks wrong in a profile that is formally right: alone, against the shipped profile of the same part,
    and what an architecture fixes.
``skeleton``
    The file to start a profile from.
``detect``
    Which profile fits a GPU.
``schema``
    The JSON Schema for editors, made from the same table.

Nothing is imported here, so that a command pays only for what it uses.
"""
