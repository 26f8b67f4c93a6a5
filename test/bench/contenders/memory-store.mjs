/** Pets as objects in memory. Their ids count from 1 and none is ever removed, so the pet n is at the place n - 1. */

export function createMemoryStore(pets) {
  const counts = { available: 0, pending: 0, sold: 0 }
  for (const { status } of pets) counts[status] += 1
  return {
    /** The pets with an id above `after`, at most one more than `limit`: there is another page if that one comes. */
    list(limit, status, after) {
      if (status === undefined) return pets.slice(after, after + limit + 1)
      const found = []
      for (let place = after; place < pets.length && found.length <= limit; place += 1) {
        if (pets[place].status === status) found.push(pets[place])
      }
      return found
    },
    count: (status) => (status === undefined ? pets.length : counts[status]),
    get: (id) => pets[id - 1],
    add({ name, categoryId, status = 'available' }) {
      const added = { id: pets.length + 1, name, categoryId, status }
      pets.push(added)
      counts[status] += 1
      return added
    },
  }
}
