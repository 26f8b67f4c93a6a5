/** Finds each small mistake that can be put into a source text, over the tree of the TypeScript compiler. Touches no file. */
import ts from 'typescript'

export interface Mutant {
  /** What the mistake is, such as `< becomes <=`. */
  readonly change: string
  /** The part of the text that is replaced, as offsets. */
  readonly start: number
  readonly end: number
  readonly replacement: string
  /** A place that is executed whenever the mistake can be noticed. */
  readonly reachedAt: number
}

/** What a token, or the name of a method that is called, becomes. */
const swaps = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['===', '!=='],
  ['!==', '==='],
  ['&&', '||'],
  ['||', '&&'],
  ['+', '-'],
  ['-', '+'],
  ['*', '/'],
  ['/', '*'],
  ['%', '*'],
  ['&', '|'],
  ['|', '&'],
  ['<<', '>>'],
  ['+=', '-='],
  ['-=', '+='],
  ['??=', '='],
  ['++', '--'],
  ['--', '++'],
  ['min', 'max'],
  ['max', 'min'],
  ['some', 'every'],
  ['every', 'some'],
  ['true', 'false'],
  ['false', 'true'],
])

/** All mutants of a source text. Types, imports and the names of members stay as they are. */
export function findMutants(text: string): readonly Mutant[] {
  const source = ts.createSourceFile('source.ts', text, ts.ScriptTarget.Latest, true)
  const mutants: Mutant[] = []

  const replace = (node: ts.Node, replacement: string, change: string, end = node.end): void => {
    mutants.push({ change, start: node.getStart(), end, replacement, reachedAt: findReached(node) })
  }

  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return
    if (ts.isSourceFile(node) || ts.isBlock(node) || ts.isCaseOrDefaultClause(node))
      visitStatements(node.statements)
    if (ts.isObjectLiteralExpression(node)) visitMembers(node.properties)
    if (ts.isArrayLiteralExpression(node)) visitMembers(node.elements)
    if (ts.isIfStatement(node) || ts.isWhileStatement(node)) negate(node.expression)
    if (ts.isForStatement(node) && node.condition !== undefined) negate(node.condition)
    if (ts.isConditionalExpression(node)) negate(node.condition)
    visitExpression(node)
    ts.forEachChild(node, visit)
  }

  const visitStatements = (statements: readonly ts.Statement[]): void => {
    for (const [index, statement] of statements.entries()) {
      if (isAction(statement)) replace(statement, '', 'the statement is dropped')
      const next = statements[index + 1]
      if (next === undefined || !(isAction(statement) || isAction(next))) continue
      if (![statement, next].every((one) => isAction(one) || ts.isVariableStatement(one))) continue
      const swapped = next.getText() + text.slice(statement.end, next.getStart()) + statement.getText()
      replace(statement, swapped, 'the statement is swapped with the next', next.end)
    }
  }

  const visitMembers = (members: readonly ts.Node[]): void => {
    for (const [index, member] of members.entries()) {
      const end = members[index + 1]?.getStart() ?? member.end
      replace(member, '', 'the member is dropped', end)
    }
  }

  /** Comparisons by equality and what is negated already have a mutant that is the same. */
  const negate = (condition: ts.Expression): void => {
    const isEquality = ts.isBinaryExpression(condition) && /^[!=]==$/.test(condition.operatorToken.getText())
    const isNegated = ts.isPrefixUnaryExpression(condition)
    if (!isEquality && !isNegated) replace(condition, `!(${condition.getText()})`, 'the condition is negated')
  }

  const visitExpression = (node: ts.Node): void => {
    if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
      replace(node, node.operand.getText(), 'the ! is dropped')
    } else if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) {
      const changed = node.getText().replace(/\+\+|--/, (old) => swaps.get(old) ?? old)
      if (changed !== node.getText()) replace(node, changed, `becomes ${changed}`)
    } else if (ts.isAwaitExpression(node)) {
      replace(node, node.expression.getText(), 'the await is dropped')
    } else if (ts.isNumericLiteral(node)) {
      const value = Number(node.text)
      for (const changed of [value + 1, value - 1]) replace(node, `${changed}`, `${value} becomes ${changed}`)
    } else if (ts.isBigIntLiteral(node)) {
      const value = BigInt(node.text.slice(0, -1))
      for (const changed of [value + 1n, value - 1n])
        replace(node, `${changed}n`, `${value}n becomes ${changed}n`)
    } else if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
      const isEmpty = node.getText().length === 2
      const isName = ts.isPropertyAssignment(node.parent) && node.parent.name === node
      if (!isName) replace(node, isEmpty ? "'x'" : "''", isEmpty ? "'' becomes 'x'" : 'the string is emptied')
    } else if (isSwappable(node)) {
      const changed = swaps.get(node.getText())
      if (changed !== undefined) replace(node, changed, `${node.getText()} becomes ${changed}`)
    }
  }

  visit(source)
  return mutants
}

function isSwappable({ kind, parent }: ts.Node): boolean {
  if (kind === ts.SyntaxKind.TrueKeyword || kind === ts.SyntaxKind.FalseKeyword) return true
  if (kind === ts.SyntaxKind.Identifier) {
    return ts.isPropertyAccessExpression(parent) && ts.isCallExpression(parent.parent)
  }
  return parent !== undefined && ts.isBinaryExpression(parent) && parent.operatorToken.kind === kind
}

/** Whether the statement does something, where others declare. */
function isAction(statement: ts.Statement): boolean {
  return (
    ts.isExpressionStatement(statement) ||
    ts.isIfStatement(statement) ||
    ts.isReturnStatement(statement) ||
    ts.isThrowStatement(statement) ||
    ts.isBreakOrContinueStatement(statement) ||
    ts.isIterationStatement(statement, false) ||
    ts.isSwitchStatement(statement) ||
    ts.isTryStatement(statement)
  )
}

/**
 * Where what holds the node begins, unless the node is a statement or an operand. An operator stands in what may be skipped behind it,
 * a function in a list begins with what is executed by its calls alone, and the label of a case belongs to what the case executes.
 */
function findReached(node: ts.Node): number {
  const { parent } = node
  for (let at = node; !ts.isSourceFile(at); at = at.parent) {
    if (ts.isCaseClause(at.parent) && at.parent.expression === at) return at.parent.parent.parent.getStart()
  }
  const isOperator = ts.isBinaryExpression(parent) && parent.operatorToken === node
  const isMember = ts.isObjectLiteralExpression(parent) || ts.isArrayLiteralExpression(parent)
  return isOperator || isMember ? parent.getStart() : node.getStart()
}
