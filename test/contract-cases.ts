/**
 * The cases of the contract suite: what each section of the interface says of answers, and what keeps or breaks it.
 * Knows nothing of how the cases are run, so that node:test can run them and so can the proof that they catch wrong servers.
 */
import { randomBytes, randomInt } from 'node:crypto'
import {
  findMissing,
  type Animals,
  createAnimals,
  maxLimit,
  newName,
  newPet,
  quote,
} from './contract-animals.ts'
import type { Answer, Call, Client } from './contract-client.ts'
import {
  block,
  blockStatus,
  countPets,
  expectAnimal,
  expectArray,
  expectAtMost,
  expectCount,
  expectError,
  expectId,
  expectJson,
  expectListed,
  expectMembers,
  expectOneStatus,
  expectOnly,
  expectOnlyElsewhere,
  expectPet,
  expectRefusal,
  expectStatus,
  expectSuccess,
  idOf,
  isRefusal,
  isStatus,
  isSuccess,
  noRoom,
  NotTried,
  readId,
  readMember,
  readPets,
  show,
  statuses,
  violate,
} from './contract-expect.ts'
import type { Conclusion, Paint } from './contract-summary.ts'
import { type Case, createVerdict, type Scope, type Verdict } from './contract-verdict.ts'

const int64Values = [
  '0',
  '1',
  '-1',
  '9007199254740991',
  '9007199254740993',
  '-9007199254740993',
  '9223372036854775807',
  '-9223372036854775808',
]

type DefineTest = ReturnType<Verdict['createTest']>

interface Section extends Client, Animals {
  /** For what a first server must do. */
  test: DefineTest
  /** For what is rarely met. `--basics` leaves it out. */
  strictTest: DefineTest
  /** For integers that many languages round. `--basics` leaves them out, and they are told last. */
  integerTest: DefineTest
}

/** By title. What stands behind a comma tells the parts of a section apart that are tried at another time. */
const sections: Record<string, (section: Section) => void> = {
  // The first one, for what it looks at is hidden once the store holds more than a page.
  '4.1 List pets, while there are few': ({
    test,
    strictTest,
    list,
    addAnimal,
    expectKept,
    oneOfEach,
    tryOneOfEach,
  }) => {
    const queries = ['', ...statuses.map((status) => `?status=${status}`)]
    /** Of a store that may have no pets yet. */
    const early: Answer[] = []
    test('responds to GET /pets', async () => {
      for (const query of queries) early.push(await list(query))
      await tryOneOfEach()
    })
    test('answers 200 and [] when there is nothing to list', async () => {
      await tryOneOfEach()
      for (const [index, query] of queries.entries()) {
        // What is wrong with each list is told by other cases.
        readPets(await list(query))
        const answer = early[index]
        if (answer === undefined || isList(answer)) continue
        expectStatus(answer, 200)
        expectArray(answer)
      }
      if (!early.some(isEmptyList) && !isEmptyList(await list('?status=lost'))) throw new NotTried(notEmpty)
    })
    test('lists by status the pets that have it, and no others', async () => {
      await tryOneOfEach()
      for (const status of statuses) expectOnly(await list(`?status=${status}`), status)
      const added = await oneOfEach()
      for (const [status, { id }] of added) {
        const answer = await list(`?status=${status}`)
        const pets = readPets(answer)
        if (pets.length >= 20 || pets.some((pet) => idOf(pet) === id)) continue
        await expectKept(id)
        violate(
          answer,
          `pet ${id} among them, for it is ${status}`,
          `${countPets(pets.length)}, that one not among them`,
        )
      }
    })
    for (const query of ['', `?limit=${maxLimit}`])
      strictTest(`lists a pet as soon as it is added: GET /pets${query}`, async () => {
        await oneOfEach()
        let count = 0
        for (const status of statuses) {
          // Not the addresses of other cases, for which a server may keep its responses.
          const answer = await list(`?status=${status}&limit=${query === '' ? 98 : 99}`)
          expectOnlyElsewhere(answer, status)
          count += readPets(answer).length
        }
        const before = await list(query)
        const { id } = await addAnimal()
        const after = await list(query)
        const pets = readPets(after)
        if (pets.some((pet) => idOf(pet) === id)) return
        if (pets.length >= (query === '' ? 20 : maxLimit)) throw new NotTried(noRoom)
        await expectKept(id)
        const shown = readPets(before).length
        if (shown < count)
          block('8', after, `${countPets(count)}, which is less than a page`, countPets(shown))
        violate(
          after,
          `pet ${id} among them, for it was just added, and less than a page`,
          `${countPets(pets.length)}, that one not among them`,
        )
      })
    strictTest('lists pets of each status when there is no filter', async () => {
      const answer = await list(`?limit=${maxLimit}`)
      const missing = findMissing(answer, await oneOfEach())
      if (missing === undefined) return
      if (readPets(answer).length >= maxLimit) throw new NotTried(noRoom)
      await expectKept(missing.id)
      violate(answer, missing.expected, missing.received)
    })
  },

  '1 The service': ({ test, strictTest, list, add, anyAnimal, fetchAnimal, tryOneOfEach }) => {
    test('lists pets under the base address', async () => {
      await tryOneOfEach()
      expectStatus(await list(), 200)
    })
    test('answers listPets as application/json', async () => {
      await tryOneOfEach()
      const answer = await list()
      if (!isSuccess(answer)) block('4.1', answer, '200')
      expectJson(answer)
    })
    test('answers createPet as application/json', async () => {
      const answer = await add(newPet())
      if (!isSuccess(answer)) block('4.2', answer, 'success')
      expectJson(answer)
    })
    test('answers getPet as application/json', async () => {
      expectJson(await fetchAnimal((await anyAnimal()).id))
    })
    strictTest('reads a JSON body with escapes, spaces and line breaks, members in any order', async () => {
      const name = newName()
      const escaped = name.replace('R', String.raw`\u0052`)
      const answer = await add(`{\r\n\t"status" : "sold",\n\t"categoryId" : 7 ,\n "name":"${escaped}"\n}\n`)
      expectSuccess(answer)
      expectMembers(answer, { name })
    })
  },

  '2 Data': (section) => {
    const { test, strictTest, integerTest, list, add, addAnimal, fetchAnimal, expectKept } = section
    const { expectUnique, findRoom, tryOneOfEach, readListsOfNewPets } = section

    test('Pet has name, categoryId and id, each of its type, when it was added', async () => {
      const answer = await add(newPet())
      if (!isSuccess(answer)) block('4.2', answer, 'success')
      expectPet(answer, answer.json)
    })
    test('Pet has name, categoryId and id, each of its type, when it is fetched', async () => {
      const answer = await fetchAnimal((await addAnimal()).id)
      expectPet(answer, answer.json)
    })
    test('Pet has name, categoryId and id, each of its type, when it is listed', async () => {
      for (const answer of await readListsOfNewPets())
        for (const pet of readPets(answer)) expectPet(answer, pet)
    })
    test('Pet has an id of its own, also when many are added at once', async () => {
      const answers = [await add(newPet()), await add(newPet())]
      answers.push(...(await Promise.all(Array.from({ length: 10 }, () => add(newPet())))))
      for (const answer of answers) await expectUnique(readId(answer), answer)
    })
    const queries = ['', '?limit=1', '?limit=100', ...statuses.map((status) => `?status=${status}`)]
    const expectEachIdOnce = async (answer: Answer): Promise<void> => {
      const ids = readPets(answer).map(idOf)
      const twice = ids.find((id, index) => ids.indexOf(id) !== index)
      if (twice === undefined) return
      await expectUnique(twice, answer)
      violate(answer, 'each id once', `a list with id ${twice} twice`)
    }
    test('Pet is listed once: no id stands twice in a list', async () => {
      await tryOneOfEach()
      // In a store that is full, lists may show no new pet, but those that an earlier run has added.
      for (const query of queries) await expectEachIdOnce(await list(query))
      for (const answer of await readListsOfNewPets()) await expectEachIdOnce(answer)
    })
    test('Pet gets its id from the service: an id in the body is refused or ignored', async () => {
      const id = `4${randomInt(1e9, 9e9)}`
      const answer = await add(newPet({ id }))
      if (isRefusal(answer)) return
      if (readId(answer) === id)
        violate(answer, 'an id assigned by the service, not the one in the body', `the body's id ${id}, kept`)
    })

    for (const query of queries)
      test(`Pets is a bare array for GET /pets${query}`, async () => {
        await tryOneOfEach()
        const answer = await list(query)
        expectStatus(answer, 200)
        expectArray(answer)
      })

    test('PetStatus is one of the statuses for every listed pet', async () => {
      for (const answer of await readListsOfNewPets())
        for (const pet of readPets(answer))
          if (pet['status'] === null) block('3', answer, statusWords, nameStatus(pet, answer))
          else if ('status' in pet && !isStatus(pet['status']))
            violate(
              answer,
              `one of ${statuses.join(', ')}`,
              `a pet with status ${show(pet['status'])} (id ${idOf(pet)})`,
            )
    })

    for (const digits of int64Values) {
      const define = digits.length < 3 ? test : integerTest
      define(`NewPet keeps categoryId ${digits} exactly`, async () => {
        const answer = await add(newPet({ categoryId: digits }))
        expectSuccess(answer, 'success: any int64 is a categoryId')
        expectMembers(answer, { categoryId: BigInt(digits) })
        expectMembers(await fetchAnimal(readId(answer)), { categoryId: BigInt(digits) })
      })
    }
    integerTest('NewPet lists a categoryId beyond 2^53 exactly', async () => {
      const status = await findRoom()
      const added = await add(newPet({ categoryId: '9007199254740993' }))
      expectSuccess(added, 'success: any int64 is a categoryId')
      const { id } = await addAnimal({ categoryId: '9007199254740993', status: quote(status) })
      await expectKept(id)
      const answer = await list(`?status=${status}&limit=${maxLimit}`)
      const listed = readPets(answer).find((pet) => idOf(pet) === id)
      if (listed === undefined)
        block('4.1', answer, `pet ${id} among them, for it was just added`, 'a list without it')
      expectMembers({ ...answer, json: listed }, { categoryId: 9007199254740993n })
    })
    const unusualNames = {
      'beyond ASCII': `Zoë 🐾 ${newName()}`,
      'with quotes and backslashes': `"\\" ${newName()}`,
      'of 2000 characters': newName().padEnd(2000, 'x'),
      'of no characters': '',
      'with blanks at both ends': ` ${newName()} `,
      'with several blanks in a row': `Rex   ${newName()}`,
      'with a tab and a line break': `Rex\t${newName()}\n${newName()}`,
      'with capitals in the middle': newName().replace(/x./, (letters) => letters.toUpperCase()),
      'with characters of HTML': `<b>${newName()}</b> &amp; "Co"`,
      'with a letter in two code points': `Zoe\u0308 ${newName()}`,
      'of digits': `007${randomInt(1e8, 1e9)}`,
    }
    for (const [kind, name] of Object.entries(unusualNames))
      strictTest(`NewPet keeps a name ${kind} as it is, or refuses it`, async () => {
        const answer = await add(newPet({ name: quote(name) }))
        if (isRefusal(answer)) return
        expectSuccess(answer, 'kept, or refused with a 4xx')
        expectMembers(answer, { name })
        expectMembers(await fetchAnimal(readId(answer)), { name })
      })
  },

  '3 Statuses': ({ test, add, addAnimal, fetchAnimal }) => {
    for (const status of statuses)
      test(`keeps the status ${status} that a pet is added with`, async () => {
        const answer = await add(newPet({ status: quote(status) }))
        if (!isSuccess(answer)) block('4.2', answer, 'success')
        expectMembers(answer, { status })
        expectMembers(await fetchAnimal(readId(answer)), { status })
      })
    test('gives a pet that is added without a status one of the three', async () => {
      const { answer, pet } = await addAnimal()
      expectAnimal(answer)
      if (pet['status'] === undefined) blockStatus(answer)
      if (!isStatus(pet['status'])) violate(answer, statusWords, nameStatus(pet, answer))
    })
    test('keeps the status that it gave', async () => {
      const { id, pet, answer } = await addAnimal()
      expectAnimal(answer)
      if (pet['status'] === undefined) blockStatus(answer)
      if (!isStatus(pet['status'])) block('3', answer, statusWords, nameStatus(pet, answer))
      expectMembers(await fetchAnimal(id), { status: pet['status'] })
    })
  },

  '4.1 List pets': (section) => {
    const { test, strictTest, list, addAnimal, fetchAnimal, expectKept } = section
    const { oneOfEach, tryOneOfEach, stock, findRoom } = section

    test('answers 200', async () => {
      await tryOneOfEach()
      expectStatus(await list(), 200)
    })
    for (const query of ['', ...statuses.map((status) => `?status=${status}`)])
      test(`returns at most 20 pets when limit is omitted: GET /pets${query}`, async () => {
        await stock()
        expectAtMost(await list(query), 20)
      })
    for (const limit of [1, 2, 19, 21, 50, 100])
      test(`returns at most ${limit} for limit=${limit}`, async () => {
        await stock()
        expectAtMost(await list(`?limit=${limit}`), limit)
      })
    for (const status of statuses) {
      test(`returns only ${status} pets for status=${status}`, async () => {
        await stock()
        const answer = await list(`?status=${status}&limit=${maxLimit}`)
        expectOnly(answer, status)
        if (readPets(answer).length === 0) violate(answer, `some pets: several that are ${status} were added`)
      })
      test(`returns at most 2 pets, all ${status}, for status=${status}&limit=2`, async () => {
        await stock()
        const answer = await list(`?status=${status}&limit=2`)
        expectAtMost(answer, 2)
        expectOnly(answer, status)
      })
    }
    strictTest('leaves the statuses of pets alone when it lists by status', async () => {
      const added = await oneOfEach()
      const listedAs = new Map<string, string>()
      for (const status of statuses) {
        const answer = await list(`?status=${status}&limit=${maxLimit}`)
        expectOnlyElsewhere(answer, status)
        for (const pet of readPets(answer)) {
          const pair = show([idOf(pet), pet['name']])
          const before = listedAs.get(pair) ?? status
          if (before !== status)
            violate(
              answer,
              `pets that are ${status}`,
              `pet ${idOf(pet)} among them, which was listed as ${before}`,
            )
          listedAs.set(pair, status)
        }
      }
      for (const [status, { id }] of added) {
        const answer = await fetchAnimal(id)
        const given = readMember(answer, 'status')
        if (isStatus(given) && given !== status)
          violate(
            answer,
            `status ${show(status)}, as before the lists by status`,
            `status ${show(given)}: ${answer.received}`,
          )
      }
    })
    test('lists a pet that was added', async () => {
      const status = await findRoom()
      const { id } = await addAnimal({ status: quote(status) })
      await expectKept(id)
      expectListed(await list(`?status=${status}&limit=${maxLimit}`), id)
    })
    // Left open (section 7): each of these may be refused, or read in any way.
    for (const query of [
      'limit=0',
      'limit=-1',
      'limit=101',
      'limit=1.5',
      'limit=abc',
      'limit=',
      'status=lost',
      'status=',
    ])
      strictTest(`answers ${query} with a list or a refusal`, async () => {
        const answer = await list(`?${query}`)
        if (isRefusal(answer)) return
        expectOneStatus(answer)
        if (answer.status !== 200) violate(answer, '200 with a list, or a 4xx (the interface leaves it open)')
        expectArray(answer)
        readPets(answer)
      })
  },

  '4.2 Add a pet': ({ test, strictTest, integerTest, add, addAnimal, fetchAnimal, expectNone }) => {
    /** The names and categories of bodies that were refused. No other pet has them. */
    const refused = new Set<string>()
    const isRefused = ({ name, categoryId }: Record<string, unknown>) =>
      refused.has(String(name)) || refused.has(String(categoryId))
    /** Of a pet that was added before. */
    let idBefore: string | undefined

    test('answers 201', async () => {
      const answer = await add(newPet())
      const other = isRefusal(answer) ? await add(newPet(), { isInSmallLetters: true }) : answer
      if (isRefusal(answer) && isSuccess(other)) violate(answer, `201, as ${inSmallLetters}`)
      expectStatus(answer, 201)
    })
    for (const status of statuses)
      test(`answers 201 to a pet that is ${status}`, async () => {
        expectStatus(await add(newPet({ status: quote(status) })), 201)
      })
    test('answers with the pet that was sent', async () => {
      const name = newName()
      const answer = await add(newPet({ name: quote(name), categoryId: '12' }))
      expectSuccess(answer)
      expectMembers(answer, { name, categoryId: 12n })
    })
    test('keeps the pet: getPet finds it as it was answered', async () => {
      const { id, pet, answer } = await addAnimal({ categoryId: '3' })
      expectAnimal(answer)
      const { name, categoryId, status } = pet
      expectMembers(await fetchAnimal(id), { name, categoryId, status })
    })
    strictTest('refuses or ignores members that the interface does not name', async () => {
      const name = newName()
      const answer = await add(newPet({ name: quote(name), colour: '"black"', tags: '[{"id":1}]' }))
      if (isRefusal(answer)) return
      expectSuccess(answer, '201, or a 4xx (the interface leaves it open)')
      expectMembers(answer, { name })
    })
    strictTest("leaves a pet alone when another one is added with the first one's id", async () => {
      const first = await addAnimal()
      expectAnimal(first.answer)
      await add(newPet({ id: first.id }))
      expectMembers(await fetchAnimal(first.id), { name: first.pet['name'] })
    })

    strictTest('adds one pet for one request', async () => {
      const name = newName()
      const before = await addAnimal()
      const { id } = await addAnimal({ name: quote(name), status: '"sold"' })
      // The same pet twice in a list is section 2's.
      const isSecond = (pet: Record<string, unknown>) => pet['name'] === name && idOf(pet) !== id
      await expectNone(isSecond, `one pet named ${name}, for it was added once, with id ${id}`, before.id)
    })

    /** Titles and bodies, by what is wrong with the body. */
    const invalid: Record<string, Record<string, string>> = {
      'name is missing': {
        'without name': newPet({ name: undefined, categoryId: newCategory() }),
        'without any member': '{}',
      },
      'categoryId is missing': { 'without categoryId': newPet({ categoryId: undefined }) },
      'the body is no object': {
        'that is an array': `[${newPet()}]`,
        'that is a string': '"Rex"',
        'that is a number': '5',
        'that is null': 'null',
      },
      'the body is no JSON': {
        'that is empty': '',
        'that ends too early': newPet().slice(0, -1),
        'in single quotes': newPet().replaceAll('"', "'"),
        'with text after the JSON': `${newPet()} and more`,
        'that is a form, not JSON': `name=${newName()}&categoryId=1`,
      },
    }
    const invalidValues: readonly (readonly [member: string, fault: string, values: readonly string[]])[] = [
      ['name', 'is no string', ['5', 'null', 'true', '["Rex"]', '{"first":"Rex"}']],
      ['categoryId', 'is a string, not an integer', ['"5"', '""']],
      ['categoryId', 'has a fraction', ['1.5']],
      ['categoryId', 'is no number', ['null', 'true', '[]', '{}']],
      ['categoryId', 'is beyond int64', ['9223372036854775808', '-9223372036854775809', '1e30']],
      ['status', 'is none of the three', ['"lost"', '"Available"', '""']],
      ['status', 'is no string', ['1', 'null', '["sold"]']],
    ]
    for (const [member, fault, values] of invalidValues)
      for (const value of values) {
        const body = newPet({ status: '"sold"', categoryId: newCategory(), [member]: value })
        invalid[`${member} ${fault}`] = {
          ...invalid[`${member} ${fault}`],
          [`with ${member} ${value}`]: body,
        }
      }
    const basicKinds = new Set([
      'without name',
      'without categoryId',
      'that ends too early',
      'with name 5',
      'with categoryId "5"',
      'with status "lost"',
    ])
    const chooseTest = (fault: string, kind: string): DefineTest => {
      if (fault === 'categoryId is beyond int64') return integerTest
      return basicKinds.has(kind) ? test : strictTest
    }
    for (const [fault, bodies] of Object.entries(invalid))
      for (const [kind, body] of Object.entries(bodies)) {
        const define = chooseTest(fault, kind)
        define(`refuses a body ${kind} with 400`, async () => {
          idBefore ??= (await addAnimal().catch(() => undefined))?.id
          const answer = await add(body)
          const marks = body.match(/Rex[a-z]{9}|\b\d{9}\b/g) ?? []
          if (isRefusal(answer)) for (const mark of marks) refused.add(mark)
          expectStatus(answer, 400, fault)
        })
      }
    test('lists no pet that it refused', async () => {
      await expectNone(isRefused, 'no pet whose creation was refused', idBefore)
    })
    test('still adds pets after all these refusals', async () => {
      expectStatus(await add(newPet()), 201)
    })
  },

  '4.3 Get a pet': ({ test, strictTest, integerTest, get, addAnimal, fetchAnimal }) => {
    for (const status of statuses)
      test(`answers 200 with a pet that is ${status}`, async () => {
        const { id, pet } = await addAnimal({ status: quote(status) })
        const answer = await fetchAnimal(id)
        expectMembers(answer, { name: pet['name'], categoryId: pet['categoryId'] })
        expectId(answer, id)
      })
    test('answers each with its own pet', async () => {
      const [first, second] = [await addAnimal(), await addAnimal()]
      expectAnimal(first.answer)
      expectMembers(await fetchAnimal(second.id), { name: second.pet['name'] })
      expectMembers(await fetchAnimal(first.id), { name: first.pet['name'] })
    })
    // Drawn at random, so that no prior data is in the way.
    for (const [words, define, id] of [
      ['an id', test, newSmallId()],
      ['an id beyond 2^31', integerTest, String(randomInt(2 ** 46, 2 ** 47))],
      ['an id beyond 2^53', integerTest, newBigId()],
    ] as const)
      define(`answers 404 to ${words} that no pet has`, async () => {
        expectStatus(await get(id), 404, 'no pet has this id')
      })
    test('refuses a petId that is no integer', async () => {
      expectRefusal(await get('abc'), 'the petId is no integer')
    })
    strictTest('refuses a petId that only begins with the id of a pet', async () => {
      const { id } = await addAnimal()
      expectRefusal(await get(`${id}abc`), 'the petId is no integer')
      expectRefusal(await get(`${id}.5`), 'the petId is no integer')
    })
    integerTest('answers 404 to an id of which the low 32 bits are the id of a pet', async () => {
      const { id } = await addAnimal()
      if (!/^\d{1,9}$/.test(id)) return
      expectStatus(await get(String(BigInt(id) + 2n ** 32n)), 404, 'no pet has this id')
    })
    integerTest('refuses a petId beyond int64, also when its low 64 bits are the id of a pet', async () => {
      const { id } = await addAnimal()
      const beyond = 'the petId is beyond int64'
      expectRefusal(await get('9223372036854775808'), beyond)
      if (/^\d+$/.test(id)) expectRefusal(await get(String(BigInt(id) + 2n ** 64n)), beyond)
    })
  },

  '4.4 Left open: operations': ({ strictTest, send, list, anyAnimal, fetchAnimal }) => {
    strictTest('answers GET /store/orders in some way, and lists pets as before', async () => {
      await send('/store/orders')
      expectStatus(await list(), 200)
    })
    strictTest('answers PATCH /pets/{petId} in some way, and fetches the pet as before', async () => {
      const { id } = await anyAnimal()
      await send(`/pets/${id}`, { method: 'PATCH', body: '{}' })
      await fetchAnimal(id)
    })
  },

  '5 Keys': ({ test, strictTest, key, keyHeaders, list, add, get, addAnimal, anyAnimal, expectNone }) => {
    /** Of the pets that were answered with 401. */
    const names = new Set<string>()
    /** Of a pet that was added before. */
    let idBefore: string | undefined
    const createPet = async (call: Call): Promise<Answer> => {
      idBefore ??= (await addAnimal().catch(() => undefined))?.id
      const name = newName()
      const answer = await add(newPet({ name: quote(name) }), call)
      if (answer.status === 401) names.add(name)
      return answer
    }
    const operations: Record<string, (call: Call) => Promise<Answer>> = {
      listPets: (call) => list('', call),
      createPet,
      getPet: async (call) => get((await anyAnimal()).id, call),
    }
    // Whoever takes the key in another form is told so once.
    const isOtherForm = (value: string) =>
      Object.values(keyHeaders).includes(value) && !value.startsWith('Bearer ')

    /** The responses of operations that need no key. How they take a wrong one is no news then. */
    const open = new Map<string, Answer>()
    const expect401 = (operation: string, answer: Answer, reason: string) => {
      const first = open.get(operation)
      if (first !== undefined) expectStatus(first, 401, noKey)
      expectStatus(answer, 401, reason)
    }

    for (const [operation, ask] of Object.entries(operations)) {
      test(`lets ${operation} through with the key`, async () => {
        const answer = await ask({})
        if ([401, 403].includes(answer.status)) violate(answer, 'success: the key is good')
      })
      test(`answers ${operation} without Authorization with 401`, async () => {
        const answer = await ask(withoutKey)
        if (answer.status !== 401) open.set(operation, answer)
        expectStatus(answer, 401, noKey)
      })
      for (const [reason, values] of Object.entries(findBadAuthorizations(key)))
        for (const [words, value] of Object.entries(values))
          if (!isOtherForm(value)) {
            const define = words === unknownKeyWords ? test : strictTest
            define(`answers ${operation} ${words} with 401`, async () => {
              const answer = await ask({ authorization: { value, words } })
              expect401(operation, answer, reason)
            })
          }
      if ('Authorization' in keyHeaders)
        strictTest(
          `answers ${operation} with the key in X-Api-Key, not in Authorization, with 401`,
          async () => {
            const words = 'with the key in X-Api-Key and without Authorization'
            const authorization = { value: null, words }
            expect401(operation, await ask({ authorization, headers: { 'X-Api-Key': key } }), noKey)
          },
        )
    }
    test('answers an invalid body without a key with 401, not 400', async () => {
      expect401('createPet', await add('{}', withoutKey), noKey)
    })
    strictTest('answers a body that is no JSON without a key with 401, not 400', async () => {
      expect401('createPet', await add('{"name":', withoutKey), noKey)
    })
    test('answers an unknown petId without a key with 401, not 404', async () => {
      expect401('getPet', await get('9007199254740993', withoutKey), noKey)
    })
    test('answers an out-of-range limit without a key with 401', async () => {
      expect401('listPets', await list('?limit=0', withoutKey), noKey)
    })
    strictTest(
      'takes the header also when its name is in small letters, as many clients send it',
      async () => {
        const [[name = '', value = ''] = []] = Object.entries(keyHeaders)
        const authorization = { value: null, words: `with the key in the header "${name.toLowerCase()}"` }
        const answer = await list('', { authorization, headers: { [name.toLowerCase()]: value } })
        if (answer.status === 401)
          violate(answer, 'success: the name of a header is the same in any letter case')
      },
    )
    test('adds no pet for a request that it answers with 401', async () => {
      if (names.size === 0) expect401('createPet', await createPet(withoutKey), noKey)
      const isStray = ({ name }: Record<string, unknown>) => names.has(String(name))
      await expectNone(isStray, 'no pet that was sent without a valid key', idBefore)
    })
  },

  '8 Limits': ({ test, list, stock, oneOfEach }) => {
    test('returns a full page of 20 by default: no fewer when there are more, no more', async () => {
      await stock()
      expectCount(await list(), 20)
    })
    test('returns one pet at the minimum, limit=1', async () => {
      await stock()
      expectCount(await list('?limit=1'), 1)
    })
    test('returns a full page of 100 at the maximum, limit=100', async () => {
      await stock()
      const answer = await list('?limit=100')
      const missing = findMissing(answer, await oneOfEach())
      if (missing !== undefined && readPets(answer).length < 100)
        block('4.1', answer, missing.expected, missing.received)
      expectCount(answer, 100)
    })
    for (const limit of [101, 1000])
      test(`never returns more than 100: limit=${limit} is refused or clamped`, async () => {
        await stock()
        const answer = await list(`?limit=${limit}`)
        if (!isRefusal(answer)) expectAtMost(answer, 100)
      })
  },

  '9 Versions': ({ strictTest, list, get, anyAnimal, fetchAnimal, stock }) => {
    strictTest('still answers getPet, deprecated as it is: neither gone nor redirected', async () => {
      const { id } = await anyAnimal()
      const answer = await get(id)
      if (answer.status === 404) await fetchAnimal(id)
      expectStatus(answer, 200)
    })
    strictTest('lists with the status filter the same pets that getPet gives', async () => {
      await stock()
      const listed = readPets(await list('?status=sold&limit=3'))
      for (const pet of listed) {
        const { name, status } = pet
        expectMembers(await fetchAnimal(idOf(pet)), { name, status })
      }
    })
  },

  // Behind the others, for it also looks back at what they were refused.
  '7 Errors': ({ test, strictTest, send, list, add, get, anyAnimal, refusals, succeeded }) => {
    const table: Record<string, { status: number; section: string; ask: () => Promise<Answer> }> = {
      'createPet with an invalid body': { status: 400, section: '4.2', ask: () => add('{}') },
      'createPet with malformed JSON': { status: 400, section: '4.2', ask: () => add('{"name"') },
      'listPets without a key': { status: 401, section: '5', ask: () => list('', withoutKey) },
      'createPet without a key': { status: 401, section: '5', ask: () => add(newPet(), withoutKey) },
      'getPet without a key': {
        status: 401,
        section: '5',
        ask: async () => get((await anyAnimal()).id, withoutKey),
      },
      'getPet of a pet that is not there': { status: 404, section: '4.3', ask: () => get(newSmallId()) },
    }
    for (const [words, { status, section, ask }] of Object.entries(table)) {
      const refuse = async () => {
        const answer = await ask()
        if (answer.status !== status) block(section, answer, String(status))
        return answer
      }
      test(`refuses ${words} with an Error body`, async () => {
        expectError(await refuse())
      })
    }
    // What is there is left open, and so is GET /store/orders.
    const paths: Record<string, () => Promise<string>> = {
      'a path that there is not': async () => `/${newName()}`,
      'a path that there is not, below a pet': async () => `/pets/${(await anyAnimal()).id}/${newName()}`,
    }
    for (const [words, findPath] of Object.entries(paths))
      strictTest(`gives an Error body if it refuses ${words}`, async () => {
        const answer = await send(await findPath())
        if (answer.status >= 400) expectError(answer)
      })
    test('gave every refusal of the other sections an Error body, too', async () => {
      // An operation that is missing has been told as that.
      const judged = refusals.filter(({ operation }) => succeeded.has(operation))
      for (const answer of judged) expectError(answer, ` (so for each of ${judged.length} refusals)`)
    })
  },

  // The last one, for a server that hangs at one of these may hang for good.
  '4.2 Add a pet, sent in other ways': ({ strictTest, list, add, succeeded }) => {
    const addInAnotherWay = async (body: string | undefined, call: Call): Promise<Answer> => {
      const answer = await add(body, call)
      // A creation that fails in every way is told by other cases.
      if (!isSuccess(answer) && !succeeded.has(answer.operation)) block('4.2', answer, 'success')
      return answer
    }
    strictTest('reads the headers of a body also when their names are in small letters', async () => {
      const name = newName()
      const answer = await addInAnotherWay(newPet({ name: quote(name) }), { isInSmallLetters: true })
      expectSuccess(answer, 'success: the name of a header is the same in any letter case')
      expectMembers(answer, { name })
    })
    strictTest('reads the whole body also when it comes in several packets', async () => {
      const name = newName()
      // No packet has all of the pet.
      const body = newPet({ name: quote(name) }).replace('{', `{${' '.repeat(3000)}`)
      const answer = await addInAnotherWay(body, { delivery: 'pieces' })
      if (answer.status === 413) return
      expectSuccess(answer, 'success: the body is as long as Content-Length says')
      expectMembers(answer, { name })
    })
    strictTest('adds a pet or refuses it when its body comes in chunks', async () => {
      const name = newName()
      const answer = await addInAnotherWay(newPet({ name: quote(name) }), { delivery: 'chunks' })
      // A server that cannot read it may say so (RFC 9110 15.6.2).
      if (isRefusal(answer) || answer.status === 501) return
      expectSuccess(answer, '201, or a 4xx (the interface leaves it open)')
      expectMembers(answer, { name })
    })
    strictTest('refuses a creation without a body and without Content-Length', async () => {
      const answer = await addInAnotherWay(undefined, {})
      // 411 is right, too (RFC 9110 15.5.12).
      if (!isRefusal(answer)) expectStatus(answer, 400, 'the body is no JSON')
    })
    strictTest('still lists pets after these', async () => {
      expectStatus(await list(), 200)
    })
  },
}

const statusWords = `a status that is one of ${statuses.join(', ')}`

function nameStatus(pet: Record<string, unknown>, { received }: Answer): string {
  return `status ${show(pet['status'])}: ${received}`
}

const inSmallLetters =
  'for "content-length" in small letters: the name of a header is the same in any letter case'
const withoutKey: Call = { authorization: { value: null, words: 'without Authorization' } }
const notEmpty =
  'the store holds pets of each status already, so that no list is empty. Start the server with an empty store'

/** A category that no other pet has: nine digits, which fit into 32 bits. */
function newCategory(): string {
  return String(randomInt(1e8, 1e9))
}

function isEmptyList(answer: Answer): boolean {
  return isList(answer) && readPets(answer).length === 0
}

function isList(answer: Answer): boolean {
  return answer.status === 200 && Array.isArray(answer.json)
}

/** An id of 32 bits that no pet has: it is drawn at random, so that no pets from before are in the way. */
function newSmallId(): string {
  return String(randomInt(1e9, 2 ** 31))
}

/** A positive int64 beyond 2^53 that no pet has, for it is drawn at random. */
function newBigId(): string {
  return String(BigInt(`0x7f${randomBytes(7).toString('hex')}`))
}

const noKey = 'no key was sent'
const unknownKeyWords = 'with an unknown key'

/**
 * Authorization headers that are as close to the good one as can be without being it: by what is wrong with them, and then by how
 * a message names them.
 */
function findBadAuthorizations(key: string): Record<string, Record<string, string>> {
  const swapped = Array.from(key, (char) =>
    char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase(),
  ).join('')
  const half = key.slice(0, key.length / 2)
  return {
    [noKey]: { 'with an empty bearer token': 'Bearer ' },
    'the key is wrong': {
      [unknownKeyWords]: `Bearer ${newName()}`,
      'with the key and a letter more': `Bearer ${key}x`,
      ...(half !== '' && { 'with only the first half of the key': `Bearer ${half}` }),
      ...(swapped !== key && { 'with the key in the other letter case': `Bearer ${swapped}` }),
    },
    'the key is not sent as Bearer': {
      'with the key but no scheme': key,
      'with the key under the scheme Basic': `Basic ${key}`,
      'with the key as the password of Basic': `Basic ${Buffer.from(`user:${key}`).toString('base64')}`,
    },
  }
}

export interface Suite {
  /** To be run one after the other, in this order. */
  readonly cases: readonly Case[]
  /** To be called after the last case, or when the rest is given up. */
  conclude(paint?: Paint): Conclusion
  /** Asks the server to delete the pets that the cases added. To be called after the last case. */
  cleanUp(): Promise<void>
}

export function createSuite(client: Client, scope: Scope): Suite {
  const animals = createAnimals(client, scope.isPatient)
  const { cases, createTest, defineFaultCases, hasFailed, isGone, conclude } = createVerdict(client, scope)
  for (const [words, define] of Object.entries(sections)) {
    const title = words.replace(/,.*/, '')
    define({
      ...client,
      ...animals,
      test: createTest(title, 'basic'),
      strictTest: createTest(title, 'strict'),
      integerTest: createTest(title, 'integers'),
    })
  }
  defineFaultCases()
  return {
    cases,
    conclude,
    async cleanUp() {
      // A service that mixes up ids might delete somebody else's pet.
      if (!isGone() && !hasFailed('2', '4.2')) await deleteAdded(client)
    },
  }
}

/** Best effort: the interface has no such operation, so the first response that is not a success ends it. */
async function deleteAdded({ addedIds, send }: Client): Promise<void> {
  try {
    for (const id of addedIds) {
      const answer = await send(`/pets/${id}`, { method: 'DELETE' })
      if (!isSuccess(answer)) return
    }
  } catch {
    // The server cannot be reached: the pets stay.
  }
}
