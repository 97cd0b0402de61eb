# truth: {step = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

import os
os.environ["KERAS_BACKEND"] = "torch"
import keras

keras.utils.set_random_seed(0)

class Odd(keras.layers.Layer):
    def call(self, x):
        return keras.ops.log(x)  # planted

net = keras.Sequential([keras.layers.Input((8,)), Odd(), keras.layers.Dense(4)])
net.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse")
x = torch.rand(96, 8).numpy() + 0.5
x[3 * 16 + 2] = -1.0
net.fit(x, x[:, :4], batch_size=16, epochs=1, shuffle=False, verbose=0)

print("weights", *(float(w.value.detach().sum()) for w in net.weights))
