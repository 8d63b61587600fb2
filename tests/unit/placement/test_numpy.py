"""Trees made of numpy's arrays are the trees made of lists."""

import numpy as np

from controller.placement import Tree, loads, smc

PARENT, RATE, LOAD, AVAILABLE = [-1, 0, 0], [1, 2, 3], [0, 2, 6], [True, False, True]


def test_arrays_make_the_same_tree() -> None:
    plain = Tree(parent=PARENT, rate=RATE, load=LOAD, available=AVAILABLE)
    arrays = Tree(
        parent=list(np.array(PARENT)),
        rate=list(np.array(RATE)),
        load=list(np.array(LOAD)),
        available=list(np.array(AVAILABLE)),
    )
    assert arrays == plain
    assert all(type(load) is int for load in arrays.load)
    assert all(type(rate.numerator) is int for rate in arrays.rate)


def test_budgets_and_blue_sets_may_be_numpys_integers() -> None:
    tree = Tree(parent=PARENT, rate=RATE, load=LOAD)
    assert smc(tree, np.array([1]).max()) == smc(tree, 1)
    assert loads(tree, list(np.array([1, 2]))) == loads(tree, {1, 2})
