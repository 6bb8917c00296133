import pytest

from tests.kernel.netns import Namespaces, skip_without_namespaces


@pytest.fixture
def namespaces():
    skip_without_namespaces()
    made = Namespaces()
    try:
        yield made
    finally:
        made.close()
