"""Every Python block of the README and of docs/ runs, and prints what the page says."""

import pytest

pytest.importorskip("markdown_it")

from pages import PAGES, ROOT, blocks, run, same

WITH_CODE = [page for page in PAGES if blocks(page)]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path):
    for block, printed in run(page, tmp_path):
        if block.output is not None:
            assert same(block.output, printed), (
                f"{page}:{block.line}: printed\n{printed}\nthe page says\n{block.output}"
            )
