#!/usr/bin/env python3
"""scripts/make-site: all papers and manuals are pages, their links lead somewhere, and a browser searches them from the disk."""
# tier: long, no-sanitizers
import glob
import os
import re
import unittest

from browser import Browser
from harness import BUILD, ROOT, Case, check, equal, main, run, until

SITE = os.path.join(BUILD, "site")


def script(status, name, *arguments):
    return run(status, os.path.join(ROOT, "scripts", name), *arguments, B=BUILD, PYTHONDONTWRITEBYTECODE="1")


class Site(Case):
    @classmethod
    def setUpClass(cls):
        made = script(None, "make-site")
        if made.status == 77:
            raise unittest.SkipTest(made.err.strip())
        check(made.status == 0, made)

    def test_each_paper_and_manual_is_a_page(self):
        papers = glob.glob(ROOT + "/docs/*.md") + glob.glob(ROOT + "/man/*.[17]") + glob.glob(BUILD + "/man/weekwheel_*.3")
        for paper in papers:
            page = os.path.relpath(paper, BUILD if paper.endswith(".3") else ROOT).removesuffix(".md") + ".html"
            check(os.path.exists(os.path.join(SITE, page)), page)
        with open(SITE + "/index.html", encoding="utf-8") as index:
            contents = index.read()
        for page in ("docs/guide.html", "man/weekwheeld.1.html", "man/weekwheel_wheel.3.html", "CHANGELOG.html"):
            check(f'href="{page}"' in contents, page)

    def test_a_browser_searches_it_on_the_disk(self):
        with Browser("--force-dark-mode") as browser:
            browser.tell("url", url="file://" + SITE + "/search.html?q=ww_wheel_schedule")
            until(lambda: browser.run("return document.querySelectorAll('#search-results li a').length"), "it finds", 0.05)
            equal(browser.text("#search-results li a"), "weekwheel_wheel(3) > ww_wheel_schedule")
            browser.click("#search-results li a")
            browser.until_text("h4:target, section:target > h4", "ww_wheel_schedule")
            until(lambda: 0 <= browser.run("return document.querySelector(':target').getBoundingClientRect().top") < 200,
                  "the function is in sight", 0.05)
            dark = browser.run("return getComputedStyle(document.body).backgroundColor")
            check(max(map(int, re.findall(r"\d+", dark))) < 64, "a dark page for who wants that: " + dark)
            browser.tell("window/rect", width=500, height=900)
            for page in ("index", "docs/guide", "docs/promises", "docs/measurements", "man/weekwheel_after.3", "man/weekwheeld.1"):
                browser.tell("url", url=f"file://{SITE}/{page}.html")
                wide = browser.run("const page = document.documentElement; return page.scrollWidth > page.clientWidth")
                check(not wide, page + " is wider than its window")
                equal((page, browser.errors()), (page, []))


class Links(Case):
    def test_each_dead_link_is_named(self):
        os.mkdir("site")
        pages = {"good.html": '<h1 id="top-of-it">x</h1><a href="#top-of-it">x</a><a href="https://example.org/">x</a>',
                 "bad.html": '<a href="good.html#top-of-it">x</a><a href="good.html#none">x</a><a href="gone.html">x</a>'
                             '<img src="gone.png"><script src="https://example.org/x.js"></script>',
                 "bad.css": "@import url(/gone.css); a { background: url(//example.org/x.png) } b { background: url(bad.css) }"}
        for name, text in pages.items():
            with open("site/" + name, "w", encoding="utf-8") as page:
                page.write(text)
        equal(script(1, "dead-links", "site").out.splitlines(), [
            "bad.css loads //example.org/x.png from the network",
            "bad.css loads /gone.css, which is not there",
            "bad.html leads to gone.html, which is not there",
            "bad.html leads to gone.png, which is not there",
            "bad.html leads to good.html#none, which has no such place",
            "bad.html loads https://example.org/x.js from the network"])
        os.remove("site/bad.html")
        os.remove("site/bad.css")
        equal(script(0, "dead-links", "site").out, "1 pages, no dead links\n")


main()
