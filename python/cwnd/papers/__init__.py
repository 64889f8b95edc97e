"""The papers' exhibits as runnable code: every table and figure beside what was published."""
