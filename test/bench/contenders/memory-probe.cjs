/** Loaded into our server for the soak: says over the channel to the runner what is in use after a full collection. */
process.on('message', () => {
  globalThis.gc()
  // Once more: what had a finalizer is free only now.
  globalThis.gc()
  const { heapUsed, external, rss } = process.memoryUsage()
  process.send({ heapBytes: heapUsed, externalBytes: external, residentBytes: rss })
})
// The channel must not keep the process alive.
process.channel.unref()
