"""A model as one page for a browser: what it is, how it predicts, and what it says of a row.

Python collects numbers and words (`content.py`) and fills the template `page.html`; the scripts of
the page, the model itself as JavaScript and `page.js`, draw all of it. What users have named comes
in as data, and becomes text.
"""
