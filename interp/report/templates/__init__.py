"""The page's template, style and script; a package so that they are installed with the code."""
