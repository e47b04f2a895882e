"""Made-up tables whose answer is known: for the demo, the page and the docs."""
