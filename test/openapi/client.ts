/** A client as an application would write it, on types generated from the document. It is compiled, and then run. */
import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { components, paths } from './generated/petstore.d.ts'

export type Pet = components['schemas']['Pet']

/** Calls each operation at the base address, so that it is answered and refused; what it expects is typed. */
export async function useStore(baseUrl: string, key: string): Promise<void> {
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } })

  const shortest = await client.POST('/pets', { body: { name: 'Rex', categoryId: 1 } })
  assert.ok(shortest.data)
  const rex: Pet = shortest.data
  assert.deepEqual({ ...rex, id: 0 }, { id: 0, name: 'Rex', categoryId: 1, status: 'available' })
  assert.equal(shortest.response.headers.get('location'), `/v1/pets/${rex.id}`)

  const mia = await client.POST('/pets', { body: { name: 'Mia', categoryId: 2, status: 'sold' } })
  assert.equal(mia.data?.status, 'sold')
  // @ts-expect-error: there is no such status
  await client.POST('/pets', { body: { name: 'Pip', categoryId: 3, status: 'gone' } })
  // @ts-expect-error: the category is required
  const refused = await client.POST('/pets', { body: { name: 'Pip' } })
  assert.equal(refused.error?.code, 'invalid_body')
  assert.equal(refused.error.status, 400)

  const all = await client.GET('/pets')
  assert.ok(all.data?.some(({ id }) => id === rex.id))
  const sold = await client.GET('/pets', { params: { query: { status: 'sold', limit: 1 } } })
  assert.equal(sold.data?.length, 1)
  const next = await client.GET('/pets', { params: { query: { after: rex.id } } })
  assert.equal(next.data?.[0]?.name, 'Mia')

  const found = await client.GET('/pets/{petId}', { params: { path: { petId: rex.id } } })
  assert.deepEqual(found.data, rex)
  const missing = await client.GET('/pets/{petId}', { params: { path: { petId: 999 } } })
  assert.equal(missing.error?.code, 'not_found')

  const stranger = await client.GET('/pets', { headers: { authorization: 'Bearer stranger' } })
  assert.equal(stranger.error?.code, 'unauthorized')
}
