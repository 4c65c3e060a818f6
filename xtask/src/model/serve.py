# Serves a model with llama.cpp's own server: serve.py WEIGHTS PORT
import sys, time
import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(sys.argv[2])
parameters.n_ctx = 4096
# A model that talks to itself is cut short.
parameters.n_predict = 64
parameters.n_parallel = 1
# Two threads that wait for each other on two busy cores are ten times slower than one.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.use_jinja = True
parameters.warmup = False
server = xllamacpp.Server(parameters)
print("ready", flush=True)
while True:
    time.sleep(3600)
