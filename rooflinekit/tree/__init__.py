"""Draft trees: shapes, rank-wise acceptance, and the best tree for a number of nodes."""

from rooflinekit.tree.engine import EngineShape, eagle2_shape, eagle2_tree
from rooflinekit.tree.optimal import best_first, draft_rows_grid, growth, growth_by_budget
from rooflinekit.tree.rank_acceptance import (
    MARGINAL,
    RankAcceptance,
    from_alpha,
    from_conditional,
    from_counts,
    from_top_accuracies,
)
from rooflinekit.tree.shape import Tree, chain, children_of, describe, from_children, from_paths, full

__all__ = [
    "MARGINAL",
    "EngineShape",
    "RankAcceptance",
    "Tree",
    "best_first",
    "chain",
    "children_of",
    "describe",
    "draft_rows_grid",
    "eagle2_shape",
    "eagle2_tree",
    "from_alpha",
    "from_children",
    "from_conditional",
    "from_counts",
    "from_paths",
    "from_top_accuracies",
    "full",
    "growth",
    "growth_by_budget",
]
