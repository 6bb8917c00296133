import pytest

from tests.kernel.netns import Namespaces


@pytest.fixture
def namespaces():
    made = Namespaces()
    try:
        yield made
    finally:
        made.close()
