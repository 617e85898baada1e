"""Pictures of trees: what the artists show equals numbers worked out by hand."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from rooflinekit.plot.style import save
from rooflinekit.plot.tree import LARGEST, SMALLEST, draw_tree, tree_surface
from rooflinekit.readers.trees import find_tree
from rooflinekit.tree import RankAcceptance, chain, from_alpha, from_paths
from rooflinekit.tree_choice import choose_tree

TREE = from_paths([[0], [1], [0, 0], [0, 1]])
RATES = RankAcceptance(((0.6, 0.2),))


@pytest.fixture
def ax():
    return Figure(layout="constrained").add_subplot()


def artist(ax, gid):
    found = [one for one in ax.get_children() if one.get_gid() == gid]
    assert len(found) == 1, gid
    return found[0]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_nodes_stand_by_level_with_the_area_of_their_probability(ax):
    assert draw_tree(TREE, RATES, ax) is ax
    nodes = artist(ax, "nodes")
    # Leaves in order: [0, 0], [0, 1], [1]; their parent above the middle.
    assert np.asarray(nodes.get_offsets()) == pytest.approx(np.array([[0.5, -1], [2, -1], [0, -2], [1, -2]]))
    assert np.asarray(artist(ax, "root").get_offsets()) == pytest.approx(np.array([[1.25, 0]]))
    shares = (np.asarray(nodes.get_sizes()) - SMALLEST) / (LARGEST - SMALLEST)
    assert shares == pytest.approx([0.6, 0.2, 0.36, 0.12])
    assert np.asarray(nodes.get_array()) == pytest.approx([0.6, 0.2, 0.36, 0.12])


def test_the_text_gives_length_and_survival(ax):
    draw_tree(TREE, RATES, ax)
    assert ax.get_title(loc="left") == "Draft tree: 2.28 tokens per round"  # 1 + 0.8 + 0.48
    assert {"2 nodes\nS1 = 0.80", "2 nodes\nS2 = 0.48"} <= set(texts(ax))
    assert {".60", ".20", ".36", ".12"} <= set(texts(ax))
    assert any(text.startswith("4 drafted nodes, 5 rows in the verify, depth 2") for text in texts(ax))


def test_ranks_never_measured_are_named(ax):
    draw_tree(from_paths([[0], [5]]), RATES, ax)
    assert "1 nodes of a rank that was never measured count as never accepted" in texts(ax)


@pytest.mark.parametrize("tree", [chain(0), chain(1), chain(3), TREE, find_tree("medusa-mc-sim-7b-63")])
def test_any_tree_can_be_drawn_without_acceptance(tree, tmp_path):
    drawn = draw_tree(tree)
    assert drawn.get_title(loc="left") == "Draft tree"
    assert save(drawn, tmp_path / "tree.png").stat().st_size > 5000


def test_a_chain_deeper_than_the_stack_can_be_drawn():
    assert draw_tree(chain(1500)).get_title(loc="left") == "Draft tree"


def test_no_node_stands_on_another(ax):
    for name in ("medusa-mc-sim-7b-63", "eagle-mc-sim-7b-63"):
        draw_tree(find_tree(name), RATES, ax)
        places = np.asarray(artist(ax, "nodes").get_offsets())
        gaps = [abs(a[0] - b[0]) for i, a in enumerate(places) for b in places[:i] if a[1] == b[1]]
        assert min(gaps) >= 1.0 - 1e-9
        ax.clear()


def test_the_surface_marks_the_best_the_near_and_the_chain(ax):
    choice = choose_tree(
        from_alpha(0.7, 0.5),
        verify_s=lambda rows: 1 + 0.02 * rows,
        plain_s=1.02,
        draft_pass_s=0.05,
        max_nodes=32,
    )
    assert tree_surface(choice, ax) is ax
    best = artist(ax, "best")
    assert (best.get_xdata()[0], best.get_ydata()[0]) == (choice.tree.nodes, choice.tree.depth)
    near = artist(ax, "near best")
    assert list(zip(near.get_xdata(), near.get_ydata(), strict=True)) == list(choice.near_best)
    assert artist(ax, "chain").get_xdata()[0] == choice.chain_k
    shown = np.ma.asarray(artist(ax, "speedup").get_array()).reshape(choice.surface.speedup.T.shape)
    used = ~np.ma.getmaskarray(shown)
    assert np.asarray(shown)[used] == pytest.approx(choice.surface.speedup.T[used])
    # One node has one level; cells of more depth than the best tree uses are blank.
    assert used[:, 0].tolist() == [True] + [False] * 15
    assert any(f"{choice.speedup:.2f}x: {choice.tree.nodes} nodes" in text for text in texts(ax))


@pytest.mark.parametrize(
    ("verify", "nodes", "depth"),
    [(1.0, 1, 1), (1.0, 4, 2), ({2: 1.0, 9: 1.1}, 8, 3), (lambda rows: rows, 16, 4)],
)
def test_small_and_sparse_grids_can_be_drawn(verify, nodes, depth, tmp_path):
    choice = choose_tree(
        RATES, verify_s=verify, plain_s=1.0, draft_pass_s=0.1, max_nodes=nodes, max_depth=depth
    )
    assert save(tree_surface(choice), tmp_path / "surface.svg").stat().st_size > 5000
