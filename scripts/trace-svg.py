#!/usr/bin/env python3
"""A picture of the last iteration in a trace that `brigade explain digits --trace FILE` wrote.

    scripts/trace-svg.py trace.json > docs/one-iteration.svg

Per rank: what it computes, a lane for each bucket (light while it waits for peers, dark while it is reduced, an outline until this rank
has seen it), and a line for each gradient that became ready.
"""
import html
import json
import sys

WIDTH, LEFT, LANE = 960, 150, 26
COLOURS = {"forward": "#9ecae1", "backward": "#4292c6", "wait for collectives": "#d9d9d9", "wait for peers": "#c7e9c0", "reduce": "#31a354"}


def read_slices(events):
    """(rank, lane, name, begin, end, iteration) of what begins and ends, in the order of beginnings; a lane is a name."""
    slices, stacks = [], {}
    for event in events:
        if event["ph"] not in "BbEei":
            continue
        if event["ph"] == "i":
            slices.append([event["pid"], "gradients ready", event["name"], event["ts"], event["ts"], event["args"]["iteration"]])
            continue
        stack = stacks.setdefault((event["pid"], event.get("id2", {}).get("local"), event["tid"]), [])
        if event["ph"] in "Bb":
            lane = "compute" if event["ph"] == "B" else f'bucket {event["args"]["bucket"]}'
            stack.append([event["pid"], lane, event["name"], event["ts"], None, event["args"]["iteration"]])
            slices.append(stack[-1])
        else:
            stack.pop()[4] = event["ts"]
    return slices


def main():
    trace = json.load(open(sys.argv[1]))
    slices = read_slices(trace["traceEvents"])
    last = max(s[5] for s in slices)
    slices = [s for s in slices if s[5] == last]
    ranks = trace["brigade"]["ranks"]
    lanes = ["compute"] + sorted({s[1] for s in slices if s[1].startswith("bucket")}, key=lambda lane: int(lane.split()[1]))
    lanes.append("gradients ready")
    begin = min(s[3] for s in slices)
    end = max(s[4] for s in slices)
    x = lambda time: LEFT + (time - begin) / (end - begin) * (WIDTH - LEFT - 20)
    top = lambda rank, lane: 34 + (rank * (len(lanes) + 1) + lanes.index(lane)) * LANE
    height = ranks * (len(lanes) + 1) * LANE + 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="10" y="18" font-size="13">{html.escape(trace["brigade"]["module"])}, iteration {last}, {ranks} ranks over '
           f'{trace["brigade"]["backend"]}: {end - begin:.0f} microseconds</text>']
    for rank, lane, name, start, stop, _ in slices:
        y = top(rank, lane)
        if lane == "gradients ready":
            out.append(f'<line x1="{x(start):.1f}" x2="{x(start):.1f}" y1="{y + 2}" y2="{y + LANE - 6}" stroke="#e6550d">'
                       f'<title>{html.escape(name)} ready</title></line>')
            continue
        w = max(1.0, x(stop) - x(start))
        out.append(f'<rect x="{x(start):.1f}" y="{y}" width="{w:.1f}" height="{LANE - 6}" fill="{COLOURS.get(name, "white")}" stroke="#555" '
                   f'stroke-width="0.5"><title>{html.escape(f"{name}: {stop - start:.0f} us")}</title></rect>')
        if w > 6.5 * len(name) and not name.startswith("bucket"):
            out.append(f'<text x="{x(start) + 3:.1f}" y="{y + 14}">{html.escape(name)}</text>')
    for rank in range(ranks):
        for lane in lanes:
            out.append(f'<text x="10" y="{top(rank, lane) + 14}">rank {rank}: {lane}</text>')
    print("\n".join(out + ["</svg>"]))


if __name__ == "__main__":
    main()
