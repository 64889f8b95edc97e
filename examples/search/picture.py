"""Draw a finding of `cwnd search` beside the same network under the reference.

python examples/search/picture.py out/search/worst-1.toml cubic picture.png

The rows are the mean window of the controller's flows, the goodput (dashed that of the other flows)
and the queue of the bottleneck.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import cwnd

COLORS = ("#c2410c", "#2456b8")
STEP_S = 0.5


def main(file: str, reference: str, picture: str) -> None:
    """Run the scenario under both controllers and draw the runs."""
    document = cwnd.Scenario.from_toml(file).to_dict()
    controller = document["flow"][0]["controller"]
    bits = 8 * 1448 / 1e6
    plt.rcParams["font.size"] = 9
    figure, axes = plt.subplots(3, sharex=True, figsize=(4.6, 4.8), dpi=140, layout="constrained")
    for name, color in zip((controller, reference), COLORS, strict=True):
        document["flow"] = [
            {**flow, "controller": name} if flow["name"] == "candidate" else flow
            for flow in document["flow"]
        ]
        result = cwnd.run(cwnd.Scenario(document))
        samples, queues = result.samples, result.queues
        own = samples["flow"].str.startswith("candidate")
        windows = samples[own].groupby("time_s")["window"].mean()
        axes[0].plot(windows.index, windows, color=color, label=name)
        for of, style in ((own, "-"), (samples["flow"].str.startswith("others"), "--")):
            delivered = samples[of].groupby("time_s")["delivered"].sum()
            if len(delivered):
                times = np.arange(delivered.index[0], delivered.index[-1], STEP_S)
                rates = np.diff(np.interp(times, delivered.index, delivered)) * bits / STEP_S
                axes[1].stairs(rates, times, color=color, linestyle=style, baseline=None)
        queue = queues[queues["link"] == "left-right"]
        axes[2].plot(queue["time_s"], queue["queue"], color=color, linewidth=1)
    for axis, title in zip(
        axes, ("window, packets", "goodput, Mbit/s", "queue, packets"), strict=True
    ):
        axis.set_ylabel(title)
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    axes[2].set_xlabel("time, s")
    axes[0].legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    figure.canvas.draw()
    image = Image.fromarray(np.asarray(figure.canvas.buffer_rgba()))  # type: ignore[attr-defined]
    image.convert("RGB").quantize(32).save(picture, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
