/** Two stores of ours in one process. Arguments: the built index.mjs, the key, two data files. */

// `node --test` without file names runs every script under `test`.
if (process.env.NODE_TEST_CONTEXT !== undefined) process.exit()

const [index, key, ...dataFiles] = process.argv.slice(2)
const { startPetStore } = await import(index)
const urls = []
for (const dataFile of dataFiles) {
  const { url } = await startPetStore({ apiKeys: [key], dataFile })
  urls.push(url)
}
console.log(urls.join(' '))
