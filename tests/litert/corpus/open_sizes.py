"""Networks with open batch sizes and lengths as TensorFlow and Keras write them: shapes are computed
with SHAPE, slices, products and the like. Each is run with the file's example and with other sizes."""

import tensorflow as tf

from .networks import dynamic

BATCHES = [[(size, 5, 8)] for size in (1, 3)]
LENGTHS = [[(1, 1, 8)], [(1, 11, 8)], [(3, 7, 8)]]
IMAGES = [[(1, 1, 1, 3)], [(1, 9, 6, 3)], [(2, 5, 12, 3)]]
ALL = ("float32", "dynamic", "float16w", "int8")


def dense(net, x, units, act=None):
    """A layer on the last axis, as Keras' Dense does it for more than two axes."""
    shape, width = tf.shape(x), x.shape[-1]
    rows = tf.reshape(x, tf.stack([tf.reduce_prod(tf.gather(shape, [0, 1])), width]))
    y = tf.reshape(rows @ net.weights((width, units), width),
                   tf.concat([tf.gather(shape, [0, 1]), [units]], 0))
    return (act or tf.identity)(y + net.vector(units))


def layer_norm(net, x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-3) * net.vector(x.shape[-1], 0.5, 1.5)


def heads(net, x, count):
    shape, width = tf.shape(x), x.shape[-1] // count
    return tf.transpose(tf.reshape(dense(net, x, x.shape[-1]),
                                   [shape[0], shape[1], count, width]), [0, 2, 1, 3])


def attention(net, x, causal=False):
    shape, width = tf.shape(x), x.shape[-1]
    query, key, value = (heads(net, x, 2) for _ in range(3))
    score = tf.matmul(query, key, transpose_b=True) * 0.5
    if causal:
        place = tf.range(shape[1])
        score = tf.where(place[:, None] >= place[None, :], score, -1e9)
    together = tf.transpose(tf.matmul(tf.nn.softmax(score), value), [0, 2, 1, 3])
    return dense(net, tf.reshape(together, [shape[0], shape[1], width]), width)


def transformer(net, x):
    x = layer_norm(net, x + attention(net, x))
    return layer_norm(net, x + dense(net, dense(net, x, 16, tf.nn.relu), x.shape[-1]))


def positions(net, x):
    return x + tf.gather(net.weights((32, 8), 8), tf.range(tf.shape(x)[1]))


def last_step(net, x):
    return dense(net, x, 4)[:, -1]


def halves(net, x):
    length = tf.shape(x)[1]
    return tf.concat([x[:, :length - length // 2], x[:, length // 2:]], 1)


def padded(net, x):
    missing = (8 - tf.shape(x)[1] % 8) % 8
    return tf.pad(x, [[0, 0], [0, missing], [0, 0]])


def filled(net, x):
    return tf.concat([x, tf.fill([tf.shape(x)[0], tf.shape(x)[1], 2], 3.0)], 2)


def state(net, x):
    return tf.reduce_sum(x, 1) + tf.zeros([tf.shape(x)[0], 8])


def tiled(net, x):
    return tf.tile(net.vector(8)[None, None], [tf.shape(x)[0], tf.shape(x)[1], 1]) * x


def mask(net, x):
    return x * tf.ones(tf.shape(x)[:2])[:, :, None]


def merged(net, x):
    shape = tf.shape(x)
    return tf.reshape(x, [shape[0], tf.reduce_prod(shape[1:])])


def repeated(net, x):
    """Each row twice, through four axes, as Keras' UpSampling1D."""
    return tf.repeat(x, 2, axis=1)


def dilated(net, x):
    """A causal layer with gaps, as Keras' Conv1D writes it for open lengths."""
    x = tf.pad(x, [[0, 0], [4, 0], [0, 0]])
    return tf.nn.convolution(x, net.weights((3, 8, 4), 24), padding="VALID", dilations=2)


def grid(net, x):
    shape = tf.shape(x)
    rows, columns = tf.meshgrid(tf.range(shape[1]), tf.range(shape[2]), indexing="ij")
    return x[..., :2] + tf.cast(tf.stack([rows, columns], -1), tf.float32)[None]


def twice_as_large(net, x):
    """Nearest neighbours through five axes, as Keras' UpSampling2D."""
    return net.conv(tf.repeat(tf.repeat(x, 2, axis=1), 2, axis=2), 4)


def transposed(net, x):
    shape = tf.shape(x)
    return tf.nn.conv2d_transpose(x, net.weights((3, 3, 4, 3), 27),
                                  [shape[0], shape[1] * 2, shape[2] * 2, 4], 2, "SAME")


def patches(net, x):
    x = tf.nn.conv2d(x, net.weights((2, 2, 3, 8), 12), 1, "SAME")
    shape = tf.shape(x)
    return dense(net, tf.reshape(x, [shape[0], shape[1] * shape[2], 8]), 4)


def common(net, x, y):
    return tf.broadcast_to(x, tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(y))) * y


def all_cases():
    for function in (dense_alone, layer_norm, attention, transformer):
        for variant in ALL:
            yield dynamic(f"open_{function.__name__}", function, [(None, None, 8)], LENGTHS,
                          variant)
    yield dynamic("open_causal", lambda net, x: attention(net, x, True), [(None, None, 8)], LENGTHS)
    yield dynamic("open_batch", transformer, [(None, 5, 8)], BATCHES)
    for function in (positions, last_step, padded, filled, state, tiled, mask, merged, repeated,
                     dilated):
        yield dynamic(f"open_{function.__name__}", function, [(None, None, 8)], LENGTHS)
    yield dynamic("open_halves", halves, [(None, None, 8)], [[(1, 6, 8)], [(2, 9, 8)]])
    for function in (grid, twice_as_large, transposed, patches):
        yield dynamic(f"open_{function.__name__}", function, [(None, None, None, 3)], IMAGES)
    yield dynamic("open_common", common, [(None, 4), (None, 4)],
                  [[(1, 4), (1, 4)], [(1, 4), (5, 4)], [(3, 4), (3, 4)]])


def dense_alone(net, x):
    return dense(net, x, 4, tf.nn.relu)
