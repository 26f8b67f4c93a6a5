/** Loaded into our server for the soak: tells the runner how much memory is in use after a full collection. */
process.on('message', () => {
  globalThis.gc()
  // Once more: what had a finalizer can be freed only now.
  globalThis.gc()
  const { heapUsed, rss } = process.memoryUsage()
  process.send({ heapBytes: heapUsed, residentBytes: rss })
})
// The channel must not keep the process alive.
process.channel.unref()
