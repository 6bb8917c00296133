"""One database, several roots: the routes of every router on a path, without copies."""

from fared.paths.rib.solver import RouteSolver
from tests.ted.fabrics import AREA, Fabric, three_stage


def looking(fabric: Fabric, solver: RouteSolver, name: str) -> RouteSolver:
    """A router's solver on the databases of another one, its own links included."""
    announced = {(AREA, node): block.prefixes for node, block in solver.ted(AREA).blocks.items()}
    other = solver.seen_from(fabric.id(name), announced)
    other.set_local_links(AREA, fabric.local_links(name))
    other.solve()
    return other


def test_another_root_gets_the_routes_that_it_computes_itself():
    fabric = three_stage()
    solver = fabric.solver("L1")
    solver.solve()
    for name in ("S1", "L2"):
        itself = fabric.solver(name)
        itself.solve()
        assert dict(looking(fabric, solver, name).routes) == dict(itself.routes)


def test_looking_from_elsewhere_changes_nothing_here():
    fabric = three_stage()
    solver = fabric.solver("L1")
    solver.solve()
    before = dict(solver.routes)
    looking(fabric, solver, "L2")
    assert not solver.solve().spf_ran
    assert dict(solver.routes) == before


def test_prefixes_that_are_left_out_have_no_route():
    fabric = three_stage()
    solver = fabric.solver("L1")
    solver.solve()
    prefix = fabric.prefix("L3")
    only = {(AREA, fabric.id("L3")): fabric.block("L3").prefixes}
    other = solver.seen_from(fabric.id("L2"), only)
    other.set_local_links(AREA, fabric.local_links("L2"))
    other.solve()
    assert set(other.routes) == {prefix}
