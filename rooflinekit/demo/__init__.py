"""The main job, end to end on this machine: measure, calibrate, validate, answer, draw.

``measuring`` runs the microbenchmark with a progress bar, ``answering`` turns its file into answers,
``screen`` prints them on one screen, ``pictures`` draws them, ``summary`` writes them as JSON.
"""
