#!/usr/bin/env python3
"""A picture of the last iteration in a trace that `brigade explain digits --trace FILE` wrote.

    scripts/trace-svg.py trace.json > docs/one-iteration.svg
"""
import html
import json
import sys

WIDTH, LEFT, LANE = 960, 150, 26
COLOURS = {"forward": "#9ecae1", "backward": "#4292c6", "wait for collectives": "#d9d9d9"}


def main():
    trace = json.load(open(sys.argv[1]))
    events = [e for e in trace["traceEvents"] if e["ph"] != "M"]
    last = max(e["args"]["iteration"] for e in events)
    events = [e for e in events if e["args"]["iteration"] == last]
    ranks = trace["brigade"]["ranks"]
    begin = min(e["ts"] for e in events)
    end = max(e["ts"] + e.get("dur", 0) for e in events)
    x = lambda time: LEFT + (time - begin) / (end - begin) * (WIDTH - LEFT - 20)
    height = ranks * 4 * LANE + 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="10" y="18" font-size="13">{html.escape(trace["brigade"]["module"])}, iteration {last}, {ranks} ranks over '
           f'{trace["brigade"]["backend"]}: {end - begin:.0f} microseconds</text>']
    for e in events:
        y = 34 + e["pid"] * 4 * LANE + e["tid"] * LANE
        if e["tid"] == 2:
            out.append(f'<line x1="{x(e["ts"]):.1f}" x2="{x(e["ts"]):.1f}" y1="{y + 2}" y2="{y + LANE - 6}" stroke="#e6550d">'
                       f'<title>{html.escape(e["name"])} ready</title></line>')
            continue
        w = max(1.0, x(e["ts"] + e["dur"]) - x(e["ts"]))
        colour = COLOURS.get(e["name"], "#74c476")
        title = f'{e["name"]}: {e["dur"]:.0f} us'
        out.append(f'<rect x="{x(e["ts"]):.1f}" y="{y}" width="{w:.1f}" height="{LANE - 6}" fill="{colour}" stroke="#555" '
                   f'stroke-width="0.5"><title>{html.escape(title)}</title></rect>')
        if w > 50:
            out.append(f'<text x="{x(e["ts"]) + 3:.1f}" y="{y + 14}">{html.escape(e["name"])}</text>')
    for rank in range(ranks):
        for lane, name in enumerate(["compute", "collectives", "gradients ready"]):
            out.append(f'<text x="10" y="{34 + rank * 4 * LANE + lane * LANE + 14}">rank {rank}: {name}</text>')
    print("\n".join(out + ["</svg>"]))


if __name__ == "__main__":
    main()
