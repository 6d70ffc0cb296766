"""One report, several renderers: text and concise for people, json, github, sarif and junit for machines."""
