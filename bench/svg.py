# SPDX-License-Identifier: BSD-2-Clause
"""Plots as SVG text: lines with whiskers (lowest and highest value) over a linear,
logarithmic or named axis. Colours are classes, which the style sheet of the page sets for
light and dark."""
import html
import math

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 46
MARKS = ("circle", "square", "triangle", "diamond", "cross")


def si(v):
    """Returns a short number for an axis: 1.5k, 20M."""
    if v == 0:
        return "0"
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(v) >= unit:
            return ("%.3g" % (v / unit)) + letter
    return "%.3g" % v


def size(v):
    """Returns a size in bytes for an axis: 512, 4K, 1M."""
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if v >= unit:
            return "%g%s" % (v / unit, letter)
    return "%g" % v


class Axis:
    """Maps values to pixels."""

    def __init__(self, values, log, low, high, zero=False):
        self.log = log
        values = [v for v in values if v is not None and (v > 0 or not log)]
        lo, hi = (min(values), max(values)) if values else (1, 10)
        if log:
            self.lo, self.hi = math.log10(lo), math.log10(hi)
            pad = max(0.05, 0.04 * (self.hi - self.lo))
        else:
            self.lo, self.hi = (0 if zero else lo), hi
            pad = 0.06 * (self.hi - self.lo or 1)
        self.hi += pad
        if log or not zero:
            self.lo -= pad
        self.low, self.high = low, high

    def at(self, v):
        if self.log:
            v = math.log10(max(v, 1e-12))
        return self.low + (v - self.lo) / (self.hi - self.lo) * (self.high - self.low)

    def ticks(self):
        if not self.log:
            step = 10 ** math.floor(math.log10((self.hi - self.lo) / 4))
            for m in (1, 2, 5, 10):
                if (self.hi - self.lo) / (step * m) <= 6:
                    step *= m
                    break
            n = math.ceil(self.lo / step)
            found = []
            while n * step <= self.hi:
                found.append(n * step)
                n += 1
            return found
        found = []
        for multiples in ((1,), (1, 3), (1, 2, 5)):
            found = [10 ** e * m for e in range(math.floor(self.lo), math.ceil(self.hi) + 1)
                     for m in multiples if self.lo <= math.log10(10 ** e * m) <= self.hi]
            if len(found) >= 3:
                break
        return found


def mark(kind, x, y, cls):
    if kind == "circle":
        return '<circle class="%s" cx="%.1f" cy="%.1f" r="3.4"/>' % (cls, x, y)
    shapes = {"square": [(-3, -3), (3, -3), (3, 3), (-3, 3)],
              "triangle": [(0, -4.2), (3.8, 3), (-3.8, 3)],
              "diamond": [(0, -4.4), (4.2, 0), (0, 4.4), (-4.2, 0)],
              "cross": [(-3, -1.2), (-1.2, -1.2), (-1.2, -3.4), (1.2, -3.4), (1.2, -1.2),
                        (3, -1.2), (3, 1.2), (1.2, 1.2), (1.2, 3.4), (-1.2, 3.4),
                        (-1.2, 1.2), (-3, 1.2)]}
    points = " ".join("%.1f,%.1f" % (x + dx, y + dy) for dx, dy in shapes[kind])
    return '<polygon class="%s" points="%s"/>' % (cls, points)


def text(x, y, s, anchor="middle", cls="t", more=""):
    return '<text class="%s" x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (
        cls, x, y, anchor, more, html.escape(s))


def frame(x_axis, y_axis, x_ticks, x_format, y_format, x_label, y_label):
    out = []
    for v in y_axis.ticks():
        y = y_axis.at(v)
        out.append('<line class="g" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>' % (
            LEFT, WIDTH - RIGHT, y, y))
        out.append(text(LEFT - 6, y + 4, y_format(v), "end"))
    last = -1000.0
    for v in x_ticks:
        x = x_axis.at(v)
        label = x_format(v)
        if x - last < 7 * len(label) + 6:
            continue
        last = x
        out.append('<line class="a" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>' % (
            x, x, HEIGHT - BOTTOM, HEIGHT - BOTTOM + 4))
        out.append(text(x, HEIGHT - BOTTOM + 17, label))
    out.append('<path class="a" d="M%d %dV%dH%d"/>' % (LEFT, TOP, HEIGHT - BOTTOM,
                                                     WIDTH - RIGHT))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label, cls="l"))
    out.append(text(14, (TOP + HEIGHT - BOTTOM) / 2, y_label, cls="l",
                    more=' transform="rotate(-90 14 %.1f)"' % (
                        (TOP + HEIGHT - BOTTOM) / 2)))
    return out


def legend(names, colours):
    """Returns (SVG of the legend below the plot, its height)."""
    out, x, y = [], LEFT, HEIGHT + 12
    for name in names:
        i = colours[name]
        width = 26 + 6.6 * len(name)
        if x > LEFT and x + width > WIDTH:
            x, y = LEFT, y + 18
        out.append('<line class="s s%d" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' % (
            i % 8, x, x + 16, y - 4, y - 4))
        out.append(mark(MARKS[i % len(MARKS)], x + 8, y - 4, "m m%d" % (i % 8)))
        out.append(text(x + 21, y, name, "start"))
        x += width + 8
    return out, y - HEIGHT + 8


def lines(series, x_label, y_label, x_log=True, y_log=True, x_format=si, y_format=si,
          title="", colours=None):
    """Returns a plot. series is [(name, [(x, median, lowest, highest)])]; colours has the
    number of each name's colour."""
    colours = colours or {name: i for i, (name, _) in enumerate(series)}
    points = [p for _, ps in series for p in ps]
    x_axis = Axis([p[0] for p in points], x_log, LEFT, WIDTH - RIGHT)
    y_axis = Axis([v for p in points for v in p[1:]], y_log, HEIGHT - BOTTOM, TOP,
                  zero=True)
    names, extra = legend([name for name, _ in series], colours)
    xs = sorted({p[0] for p in points})
    x_ticks = xs if len(xs) <= 16 else x_axis.ticks()
    out = ['<svg viewBox="0 0 %d %d" role="img" aria-label="%s">' % (
        WIDTH, HEIGHT + extra, html.escape(title, quote=True))]
    out += frame(x_axis, y_axis, x_ticks, x_format, y_format, x_label, y_label)
    for name, ps in series:
        i, ps = colours[name], sorted(ps)
        at = [(x_axis.at(x), y_axis.at(y), y_axis.at(lo), y_axis.at(hi))
              for x, y, lo, hi in ps]
        out.append('<g><title>%s</title>' % html.escape(name))
        for x, _, lo, hi in at:
            if abs(lo - hi) > 2:
                out.append('<path class="s w s%d" d="M%.1f %.1fV%.1fM%.1f %.1fh5M%.1f '
                           '%.1fh5"/>' % (i % 8, x, lo, hi, x - 2.5, lo, x - 2.5, hi))
        out.append('<polyline class="s s%d" points="%s"/>' % (
            i % 8, " ".join("%.1f,%.1f" % (x, y) for x, y, _, _ in at)))
        out += [mark(MARKS[i % len(MARKS)], x, y, "m m%d" % (i % 8)) for x, y, _, _ in at]
        out.append('</g>')
    return "\n".join(out + names + ["</svg>"])


def bars(items, x_label, title="", form=si, colours=None):
    """Returns horizontal bars on a linear axis. items is [(name, median, lowest,
    highest)]; colours has the number of each name's colour."""
    colours = colours or {item[0]: i for i, item in enumerate(items)}
    step, left = 24, 14 + int(max([6.4 * len(i[0]) for i in items] + [40]))
    height = TOP + step * len(items) + 40
    axis = Axis([v for i in items for v in i[1:]], False, left, WIDTH - RIGHT - 46, zero=True)
    out = ['<svg viewBox="0 0 %d %d" role="img" aria-label="%s">' % (
        WIDTH, height, html.escape(title, quote=True))]
    last = -1000.0
    for v in axis.ticks():
        out.append('<line class="g" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>' % (
            axis.at(v), axis.at(v), TOP, height - 36))
        if axis.at(v) - last >= 7 * len(form(v)) + 6:
            last = axis.at(v)
            out.append(text(last, height - 22, form(v)))
    for n, (name, median, lo, hi) in enumerate(items):
        y = TOP + n * step + 4
        out.append(text(left - 6, y + 12, name, "end"))
        out.append('<rect class="b m%d" x="%d" y="%d" width="%.1f" height="16"/>' % (
            colours[name] % 8, left, y, max(1, axis.at(median) - left)))
        out.append('<path class="w a" d="M%.1f %dH%.1fM%.1f %dv6M%.1f %dv6"/>' % (
            axis.at(lo), y + 8, axis.at(hi), axis.at(lo), y + 5, axis.at(hi), y + 5))
        out.append(text(max(axis.at(hi), axis.at(median)) + 5, y + 12, form(median), "start"))
    out.append(text((left + WIDTH) / 2, height - 4, x_label, cls="l"))
    return "\n".join(out + ["</svg>"])
