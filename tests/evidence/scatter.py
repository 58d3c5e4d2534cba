"""Predicted against measured as an SVG: both axes logarithmic, the diagonal and lines at a factor of 1.25."""
import html
import math

COLOURS = ["#1f6fb2", "#c2571a", "#2f8f4e", "#8a4fa3", "#b03060", "#5d6d7e", "#9a7d0a", "#00838f", "#6d4c41", "#c2185b",
           "#33691e", "#3949ab"]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, LEGEND = 760, 560, 76, 56, 40, 210


def decades(low, high):
    return [10.0 ** exponent for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def tick_text(value):
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    return f"1e{round(math.log10(value))}"


def scatter(title, unit, series):
    """series: [(name, [(measured, predicted)])], all above zero."""
    values = [value for _, points in series for point in points for value in point]
    low, high = min(values) * 0.8, max(values) * 1.25
    span = math.log(high / low)
    across, down = WIDTH - LEFT - LEGEND, HEIGHT - TOP - BOTTOM

    def x(value):
        return LEFT + across * math.log(value / low) / span

    def y(value):
        return TOP + down * (1 - math.log(value / low) / span)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="22" font-size="15" fill="#222">{html.escape(title)}</text>',
           f'<clipPath id="plot"><rect x="{LEFT}" y="{TOP}" width="{across}" height="{down}"/></clipPath>']
    for value in decades(low, high):
        if not low <= value <= high:
            continue
        out.append(f'<path d="M{x(value):.1f} {TOP}V{TOP + down}M{LEFT} {y(value):.1f}H{LEFT + across}" stroke="#e3e3e3"/>')
        out.append(f'<text x="{x(value):.1f}" y="{TOP + down + 18}" text-anchor="middle" fill="#444">{tick_text(value)}</text>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#444">{tick_text(value)}</text>')
    out.append('<g clip-path="url(#plot)">')
    for factor, style in ((1.0, 'stroke="#555"'), (1.25, 'stroke="#aaa" stroke-dasharray="4 4"'),
                          (0.8, 'stroke="#aaa" stroke-dasharray="4 4"')):
        out.append(f'<path d="M{x(low):.1f} {y(low * factor):.1f}L{x(high):.1f} {y(high * factor):.1f}" {style} fill="none"/>')
    for number, (_, points) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        out.append(f'<g fill="{colour}" fill-opacity="0.55">')
        out += [f'<circle cx="{x(measured):.1f}" cy="{y(predicted):.1f}" r="2.6"/>' for measured, predicted in points]
        out.append('</g>')
    out.append('</g>')
    for number, (name, points) in enumerate(series):
        at = TOP + 14 + number * 20
        out.append(f'<circle cx="{LEFT + across + 18}" cy="{at - 4}" r="5" fill="{COLOURS[number % len(COLOURS)]}"/>')
        out.append(f'<text x="{LEFT + across + 30}" y="{at}" fill="#222">{html.escape(name)} ({len(points)})</text>')
    out.append(f'<rect x="{LEFT}" y="{TOP}" width="{across}" height="{down}" fill="none" stroke="#888"/>')
    out.append(f'<text x="{LEFT + across / 2}" y="{HEIGHT - 12}" text-anchor="middle" fill="#222">measured, {unit}</text>')
    out.append(f'<text transform="translate(18 {TOP + down / 2}) rotate(-90)" text-anchor="middle" fill="#222">'
               f'predicted, {unit}</text>')
    out.append('</svg>')
    return "\n".join(out) + "\n"
