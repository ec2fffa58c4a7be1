"""The contrast of the text in figures, measured in pixels: axe does not look at SVG."""

from __future__ import annotations

import base64

from playwright.sync_api import Locator, Page

# WCAG AA for text of normal size.
LEAST_CONTRAST = 4.5

_TEXTS = """holder => {
    const frame = holder.getBoundingClientRect();
    return [...holder.querySelectorAll('text')].filter(one => one.textContent.trim()).map(one => {
        const { x, y, width, height } = one.getBoundingClientRect();
        const { fill } = getComputedStyle(one);
        return { text: one.textContent, fill, box: [x - frame.x, y - frame.y, width, height] };
    });
}"""

# Of each text, the pixel behind it that is nearest to its colour in luminance.
_CONTRASTS = """async ([picture, texts]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const linear = one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
    const luminance = (r, g, b) =>
        0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
    return texts.map(({ fill, box: [x, y, width, height] }) => {
        const ink = luminance(...fill.match(/[\\d.]+/g).slice(0, 3).map(Number));
        const [left, top] = [Math.max(0, x), Math.max(0, y)].map(Math.floor);
        const { data } = context.getImageData(left, top, Math.ceil(width), Math.ceil(height));
        let least = 21;
        for (let at = 0; at < data.length; at += 4) {
            if (!data[at + 3]) continue;  // outside of the picture
            const paper = luminance(data[at], data[at + 1], data[at + 2]);
            least = Math.min(least, (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
        }
        return least;
    });
}"""
_WITHOUT_TEXT = """.chart text {
    fill: transparent !important; stroke: none !important; text-shadow: none !important;
}"""


def faint_texts(page: Page) -> list[str]:
    """Return the texts of drawn figures with too little contrast to any pixel behind them."""
    found = []
    for chart in page.locator(".chart").all():
        texts = chart.evaluate(_TEXTS)
        assert texts, "a figure without text was not drawn"
        contrasts = page.evaluate(_CONTRASTS, [_picture_without_text(page, chart), texts])
        found += [
            f"{chart.get_attribute('aria-label')}: {one['text']!r}, {contrast:.2f}"
            for one, contrast in zip(texts, contrasts, strict=True)
            if contrast < LEAST_CONTRAST
        ]
    return found


def _picture_without_text(page: Page, chart: Locator) -> str:
    style = page.add_style_tag(content=_WITHOUT_TEXT)
    picture = chart.screenshot(animations="disabled")
    style.evaluate("node => node.remove()")
    return base64.b64encode(picture).decode()
