"""Quantisation, a smaller model and speculation in one table: what each changes, and whether they combine.

Times, bytes and FLOPs are the library's own prediction for each. The output distribution is computed where it
can be: speculation and typical acceptance are followed exactly on an example (:mod:`rooflinekit.sampling`).
What quantisation and distillation do to the output depends on the weights, which no roofline knows: that is said.
"""

from rooflinekit.levers.example import distance as distance
from rooflinekit.levers.example import example_chain as example_chain
from rooflinekit.levers.rows import Lever as Lever
from rooflinekit.levers.rows import LeverPoint as LeverPoint
from rooflinekit.levers.rows import LeverTable as LeverTable
from rooflinekit.levers.rows import Option as Option
from rooflinekit.levers.table import lever_table as lever_table
