"""Write the event files in tests/golden/of_tensorflow with TensorFlow itself, which is too large for CI.

    python -m venv tf && tf/bin/pip install tensorflow-cpu
    tf/bin/python tests/golden/write_with_tensorflow.py tests/golden/of_tensorflow

Three runs: `v2` by tf.summary, `v1` by the FileWriter of tf.compat.v1, `keras` by the callback
of Model.fit. Written last by TensorFlow 2.21.0.
"""

import os
import re
import shutil
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
PIXELS = np.arange(2 * 2 * 3, dtype=np.uint8).reshape(1, 2, 2, 3)
SOUND = np.linspace(-0.5, 0.5, 40, dtype=np.float32).reshape(1, 40, 1)


def with_tf_summary(folder):
    @tf.function
    def double(x):
        return x * 2 + 1

    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default():
        for step in range(10):
            tf.summary.scalar("loss", step / 2, step)
        tf.summary.scalar("half", tf.constant(0.5, tf.float16), 1)
        tf.summary.histogram("weights", np.arange(100.0), 1, buckets=10)
        tf.summary.image("picture", PIXELS, 2)
        tf.summary.audio("sound", SOUND, 8000, 3)
        tf.summary.text("words", "[bold]文字[/bold]", 4)
        tf.summary.text("table", [["a", "b"], ["c", "d"]], 4)
        tf.summary.write("tensor", tf.constant([[1.0, 2.0]]), 5)
        tf.summary.graph(double.get_concrete_function(tf.TensorSpec([], tf.float32)).graph)
    writer.close()


def with_file_writer(folder):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [], "x")
        scalar = v1.summary.scalar("loss", x)
        merged = v1.summary.merge(
            [
                v1.summary.histogram("weights", tf.range(100.0) + x),
                v1.summary.image("picture", PIXELS),
                v1.summary.audio("sound", SOUND, 8000),
                v1.summary.text("words", tf.constant("words")),
            ]
        )
        with v1.Session(graph=graph) as session, v1.summary.FileWriter(str(folder), graph) as writer:
            writer.add_session_log(v1.SessionLog(status=v1.SessionLog.START), 0)
            for step in range(10):
                writer.add_summary(session.run(scalar, {x: step / 2}), step)
            writer.add_summary(session.run(merged, {x: 0.0}), 1)
            options, traced = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE), v1.RunMetadata()
            session.run(scalar, {x: 1.0}, options, traced)
            writer.add_run_metadata(traced, "traced", 5)


def with_keras(folder):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)
    callback = tf.keras.callbacks.TensorBoard(str(folder), histogram_freq=1, write_graph=False)
    model.fit(*data, validation_data=data, epochs=3, verbose=0, callbacks=[callback])


def main(place):
    shutil.rmtree(place, ignore_errors=True)
    for write in (with_tf_summary, with_file_writer, with_keras):
        write(place / {"with_tf_summary": "v2", "with_file_writer": "v1", "with_keras": "keras"}[write.__name__])
    for number, path in enumerate(sorted(place.rglob("*tfevents*"))):
        # Host and process are those of the machine that ran this.
        name = re.sub(r"tfevents\.\d+\.[^.]+(\.\d+)?", f"tfevents.17000000{number:02}.host", path.name, count=1)
        path.rename(path.with_name(name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
