/** Finds variables of the environment that begin like those of the settings but are not among them: one may be misspelled. */

/** Assignments of PETSTORE_ variables by other tools. They are ignored. */
const foreignAssignments: readonly RegExp[] = [
  // The contract suite reads these, and may run in the same shell.
  /^PETSTORE_(?:URL|API_KEY)=/,
  // Kubernetes tells every container about each service, such as one called petstore or petstore-db.
  /^PETSTORE_(?:\w+_)?SERVICE_(?:HOST|PORT)[_=]/,
  /^PETSTORE_(?:\w+_)?PORT=(?:tcp|udp|sctp):\/\//,
  /^PETSTORE_(?:\w+_)?PORT_\d+_(?:TCP|UDP|SCTP)[_=]/,
  // `docker run --link` adds the name of the link, and the other container's environment.
  /^PETSTORE_NAME=\//,
  /^PETSTORE_ENV_/,
]

/** A line for each of them. `known` are the variables of the settings. On Windows, case does not count in names. */
export function findUnknownVariables(
  env: NodeJS.ProcessEnv,
  known: readonly string[],
  isCaseless = process.platform === 'win32',
): readonly string[] {
  return Object.entries(env)
    .map(([name, value]) => [isCaseless ? name.toUpperCase() : name, value] as const)
    .filter(([name]) => name.startsWith('PETSTORE_') && !known.includes(name))
    .filter((entry) => !foreignAssignments.some((pattern) => pattern.test(entry.join('='))))
    .map(([name]) => `${name}: is not a setting; the settings are ${known.join(', ')}`)
}
