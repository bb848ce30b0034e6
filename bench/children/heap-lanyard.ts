/** The heap before there is anything in a cache. */
import '../../src/api/index.ts'
import '../../src/runtime/index.ts'
import { report, usedHeapMB } from './child.ts'
import './lanyard.ts'

report({ heapMB: usedHeapMB() })
