"""The colours of the page and of its figures, in one place; each text has a contrast of 4.5 or more to its ground."""

#: Of a page on white, by the names of the variables in its style; figures are drawn in these too.
LIGHT = {
    "ink": "#1d2433",
    "soft": "#5a6273",
    "faint": "#8a92a3",
    "line": "#e2e5eb",
    "wash": "#f6f7f9",
    "page": "#ffffff",
    "estimate": "#2f6690",
    "sensitive": "#b4501e",
    "warn": "#8a4b00",
    "fill": "#a9c3d9",
    "fill-sensitive": "#e6bfa6",
    "band": "#c9dbe9",
    "true": "#c4121a",
    "map": "#06356b",
}
#: Of a page in the dark.
DARK = {
    "ink": "#e6e9ef",
    "soft": "#aab2c2",
    "faint": "#7d8798",
    "line": "#343b48",
    "wash": "#1d222b",
    "page": "#14181f",
    "estimate": "#8fbfe6",
    "sensitive": "#f0a27a",
    "warn": "#f0b95c",
    "fill": "#3c5f7d",
    "fill-sensitive": "#7a4a33",
    "band": "#2f4a61",
    "true": "#ff7076",
    "map": "#c4e2ff",
}
