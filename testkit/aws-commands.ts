import { execFileSync } from 'node:child_process'
import type { AwsAccount } from './aws-account.ts'

/** What a shell makes of commands of the AWS CLI: the arguments of each `aws`. */
const argumentsOf = (commands: string): string[][] => {
  const script = `aws() { node -e 'console.log(JSON.stringify(process.argv.slice(1)))' -- "$@"; }\n${commands}`
  const printed = execFileSync('bash', ['--norc', '-ec', script], { env: { PATH: process.env['PATH'] } }).toString()
  return printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as string[])
}

/** Does in an account what the AWS CLI would do with printed commands that make roles. */
export const performCommands = async (account: AwsAccount, commands: string): Promise<void> => {
  for (const [, command, ...args] of argumentsOf(commands)) {
    const option = (name: string): string => args[args.indexOf(`--${name}`) + 1]!
    if (command === 'create-role')
      await account.iam('CreateRole', {
        RoleName: option('role-name'),
        AssumeRolePolicyDocument: option('assume-role-policy-document'),
        Tags: args.includes('--tags') ? (JSON.parse(option('tags')) as { Key: string; Value: string }[]) : [],
      })
    else
      await account.iam('PutRolePolicy', {
        RoleName: option('role-name'),
        PolicyName: option('policy-name'),
        PolicyDocument: option('policy-document'),
      })
  }
}
