import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { startLocalAws } from './index.ts'

/** GetCallerIdentity, signed with Signature Version 4 as shortly as it can be written. */
const callerIdentity = async (
  endpoint: string,
  keyId: string,
  secret: string,
): Promise<{ status: number; text: string }> => {
  const body = 'Action=GetCallerIdentity&Version=2011-06-15'
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const scope = [time.slice(0, 8), 'us-east-1', 'sts', 'aws4_request']
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const headers = { host: new URL(endpoint).host, 'x-amz-date': time }
  const names = Object.keys(headers).join(';')
  const canonical = ['POST', '/', '', ...Object.entries(headers).map((pair) => pair.join(':')), '', names, hash(body)]
  const toSign = ['AWS4-HMAC-SHA256', time, scope.join('/'), hash(canonical.join('\n'))].join('\n')
  const key = scope.reduce<string | Buffer>(
    (last, part) => createHmac('sha256', last).update(part).digest(),
    `AWS4${secret}`,
  )
  const signature = createHmac('sha256', key).update(toSign).digest('hex')
  const response = await fetch(endpoint, {
    method: 'POST',
    body,
    headers: {
      ...headers,
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `AWS4-HMAC-SHA256 Credential=${keyId}/${scope.join('/')}, SignedHeaders=${names}, Signature=${signature}`,
    },
  })
  return { status: response.status, text: await response.text() }
}

test('the local AWS knows who signed, refuses whom it does not know, and is gone after stop', async () => {
  const aws = await startLocalAws()
  const { pid } = aws.process
  try {
    const root = await callerIdentity(aws.endpoint, '111122223333', 'any')
    assert.match(root.text, /<Account>111122223333<\/Account>/)
    assert.match(root.text, /<Arn>arn:aws:iam::111122223333:root<\/Arn>/)
    assert.equal((await callerIdentity(aws.endpoint, 'AKIAUNKNOWNUNKNOWN00', 'any')).status, 403)
  } finally {
    await aws.stop()
  }
  assert.equal(existsSync(`/proc/${pid}`), false)
  assert.equal(existsSync(aws.folder), false)
  await assert.rejects(fetch(aws.endpoint))
})
