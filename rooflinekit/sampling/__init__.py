"""Draft-then-verify on small random models, computed exactly: what is accepted, and what comes out.

A *rule* (:mod:`~rooflinekit.sampling.rules`) says how one drafted token is judged and becomes a
:class:`Verdict`; a :class:`Chain` adds a context that depends on the past. From there: the exact acceptance
length and survival, the exact distribution of whole sequences by enumeration
(:mod:`~rooflinekit.sampling.enumeration`), several candidates per position
(:mod:`~rooflinekit.sampling.candidates`), and a seeded simulator that samples what was computed.

>>> import numpy as np
>>> verdict = speculative(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3]))
>>> round(float(verdict.acceptance), 12), verdict.lossless
(0.7, True)
>>> np.round(verdict.output, 12).tolist()
[0.5, 0.3, 0.2]
"""

from rooflinekit.sampling.candidates import Candidates as Candidates
from rooflinekit.sampling.candidates import recursive_rejection as recursive_rejection
from rooflinekit.sampling.candidates import top_ranks as top_ranks
from rooflinekit.sampling.chain import Chain as Chain
from rooflinekit.sampling.chain import contexts as contexts
from rooflinekit.sampling.distributions import acceptance_rate as acceptance_rate
from rooflinekit.sampling.distributions import divergence as divergence
from rooflinekit.sampling.distributions import draft_at as draft_at
from rooflinekit.sampling.distributions import greedy as greedy
from rooflinekit.sampling.distributions import random_distributions as random_distributions
from rooflinekit.sampling.distributions import residual as residual
from rooflinekit.sampling.distributions import tempered as tempered
from rooflinekit.sampling.distributions import total_variation as total_variation
from rooflinekit.sampling.enumeration import block_outcomes as block_outcomes
from rooflinekit.sampling.enumeration import length_distribution as length_distribution
from rooflinekit.sampling.enumeration import round_outcomes as round_outcomes
from rooflinekit.sampling.enumeration import sequence_distribution as sequence_distribution
from rooflinekit.sampling.enumeration import target_sequences as target_sequences
from rooflinekit.sampling.rules import Verdict as Verdict
from rooflinekit.sampling.rules import blended as blended
from rooflinekit.sampling.rules import relaxed as relaxed
from rooflinekit.sampling.rules import speculative as speculative
from rooflinekit.sampling.rules import target_only as target_only
from rooflinekit.sampling.rules import typical as typical
from rooflinekit.sampling.simulation import Simulation as Simulation
from rooflinekit.sampling.simulation import simulate as simulate
