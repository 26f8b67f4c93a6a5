/** Sends a creation, a list and a list with a wrong key, and gives their statuses. `fake` is called before. */
exports.sendRequests = async (startPetStore, fake) => {
  const store = await startPetStore({ apiKeys: ['test-key'], dataFile: 'pets.json', delayMs: 1 })
  fake()
  const statuses = []
  for (const [method, key] of [
    ['POST', 'test-key'],
    ['GET', 'test-key'],
    ['GET', 'wrong'],
  ]) {
    const body = method === 'POST' ? '{"name":"Rex","categoryId":1}' : null
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(`${store.url}/v1/pets`, { method, body, headers })
    await response.text()
    statuses.push(response.status)
  }
  await store.close()
  return statuses
}
