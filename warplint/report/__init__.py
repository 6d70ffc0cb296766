"""One list of findings, several renderers."""
