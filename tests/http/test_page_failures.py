"""The page for people, in a real browser: without a key, and without a server."""

from contextlib import ExitStack

from playwright.sync_api import Browser, expect

from support.browser import page_of, violations, visiting
from support.ports import free_port
from support.service_running import Running, serving, settings_for

from .conftest import KEY


def test_a_key_is_asked_for_where_the_server_wants_one(keyed: Running, browser: Browser) -> None:
    with visiting(browser, page_of(keyed), requests_may_fail=True) as page:
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        assert violations(page) == []
        page.get_by_label("Key", exact=True).fill("wrong")
        page.get_by_role("button", name="Continue").click()
        expect(dialog).to_contain_text("The server does not know this key.")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Key").click()
        page.get_by_label("Key", exact=True).fill(KEY)
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        page.get_by_label("Text to translate").fill("The house is red.")
        expect(page.locator(".sentence")).to_have_count(1)
        # It stays for this tab alone.
        page.reload()
        assert page.evaluate("localStorage.length") == 0
        # With one direction there is nothing to choose.
        expect(page.locator("#source option")).to_have_text(["English"])
        expect(page.locator("#target option")).to_have_text(["Portuguese"])
        expect(page.get_by_label("Swap languages")).to_be_disabled()


def test_a_server_that_is_lost_is_found_again(browser: Browser) -> None:
    settings = settings_for(http=f"127.0.0.1:{free_port()}")
    with ExitStack() as first:
        running = first.enter_context(serving(settings))
        with visiting(browser, page_of(running), requests_may_fail=True) as page:
            page.get_by_label("Text to translate").fill("The dog is black.")
            expect(page.locator(".sentence")).to_have_count(1)
            (expected,) = running.translate("The house is red.")
            first.close()
            page.get_by_label("Text to translate").fill("The house is red.")
            expect(page.get_by_role("alert")).to_have_text("The server can't be reached.")
            expect(page.locator("#banner")).to_contain_text("Trying again")
            assert violations(page) == []
            with serving(settings):
                expect(page.locator("#banner")).to_be_hidden()
                expect(page.locator("#output")).to_have_text(expected.text)
